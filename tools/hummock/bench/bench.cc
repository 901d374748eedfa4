#include "bench/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/document.h"
#include "bench/files.h"
#include "bench/machine.h"
#include "bench/peers.h"
#include "bench/plan.h"
#include "bench/process.h"
#include "bench/programs.h"
#include "bench/schedule.h"
#include "bench/stats.h"
#include "bench/table.h"
#include "bench/waste.h"
#include "bench/worker.h"
#include "outputs.h"

namespace hummock::tool {
namespace {

constexpr const char* kWorker = "hummock-bench-work";

const char* mode_name(BenchMode mode) {
  return mode == BenchMode::kQuick ? "quick" : mode == BenchMode::kFull ? "full" : "default";
}

// Inside the present folder as seen from there: a stored result need not tell where the source tree stood.
std::string short_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string here = fs::canonical(fs::current_path(error), error).string() + "/";
  return !error && path.rfind(here, 0) == 0 ? path.substr(here.size()) : path;
}

Json facts_of(const Allocator& allocator) {
  return {{"name", allocator.name},
          {"version", allocator.version},
          {"library", short_path(allocator.library)},
          {"origin", allocator.origin},
          {"compiler", allocator.compiler},
          {"flags", allocator.flags},
          {"setting", allocator.setting}};
}

Json facts_of(const Cell& cell) {
  return {{"workload", cell.workload->name}, {"threads", cell.threads}, {"size", cell.size}};
}

void print_allocators(const Peers& peers, FILE* stream) {
  for (const Allocator& one : peers.allocators)
    fputs(fmt::format(
              "  {:16} {:24} {:10} {}\n", one.name, one.version, one.origin,
              one.flags.empty() ? one.library : one.compiler + (one.compiler.empty() ? "" : " ") + one.flags)
              .c_str(),
          stream);
  for (const std::string& missing : peers.missing) fputs(("  " + missing + "\n").c_str(), stream);
}

void print_list(const std::vector<Workload>& workloads, const Peers& peers) {
  std::vector<std::string> groups;
  for (const Workload& one : workloads)
    if (std::find(groups.begin(), groups.end(), one.group) == groups.end()) groups.push_back(one.group);
  for (const std::string& group : groups) {
    fputs((group + "\n").c_str(), stdout);
    for (const Workload& one : workloads)
      if (one.group == group) fputs(fmt::format("  {:24} {}\n", one.name, one.title).c_str(), stdout);
  }
  fputs("\nallocators\n", stdout);
  print_allocators(peers, stdout);
}

void announce(const Plan& plan, const Peers& peers, const Json& machine) {
  fputs(fmt::format("{} cells on {} allocators, {} to {} runs each{}:\n", plan.cells.size(),
                    peers.allocators.size(), plan.repeat_fixed ? plan.repeat : 1, plan.repeat,
                    plan.budget > 0 ? ", at most " + fmt::format("{:.0f}", plan.budget) + " s" : "")
            .c_str(),
        stderr);
  if (!plan.skipped.empty())
    fputs(
        fmt::format("{} cells more do not fit that time; --budget MINUTES gives more\n", plan.skipped.size())
            .c_str(),
        stderr);
  print_allocators(peers, stderr);
  const double load = machine.value("load_before", 0.0);
  if (load > 0.5)
    fputs(fmt::format("the machine is busy (load {:.1f}): runs beside other load are flagged and repeated\n",
                      load)
              .c_str(),
          stderr);
}

}  // namespace

void demand_active(const Peers& peers, const std::string& worker) {
  for (const Allocator& allocator : peers.allocators)
    if (const std::string reason = why_not_active(allocator, worker); !reason.empty())
      throw std::runtime_error(fmt::format("{} is not active: {}", allocator.name, reason));
}

void write_outputs(const BenchOptions& options, const Json& document) {
  write_each({{options.json, write_json}, {options.csv, write_csv}, {options.html, write_html}}, document);
}

Json document_of(const BenchOptions& options, const Peers& peers) {
  Json document = {{"format", kFormat},           {"program", "hummock bench"},
                   {"date", date_now()},          {"mode", mode_name(options.mode())},
                   {"command", options.command},  {"seed", options.seed},
                   {"machine", machine_facts()},  {"allocators", Json::array()},
                   {"baseline", options.baseline}};
  for (const Allocator& allocator : peers.allocators) document["allocators"].push_back(facts_of(allocator));
  document["missing"] = peers.missing;
  return document;
}

void finish_document(Json& document) {
  set_ratios(document);
  document["summary"] = summary_of(document);
  for (const char* part : {"waste", "skipped"})
    if (!document.contains(part)) document[part] = Json::array();
  document["interrupted"] = interrupted();
}

namespace {

ScheduleOptions schedule_of(const BenchOptions& options, const std::string& worker,
                            const std::optional<Programs>& programs) {
  ScheduleOptions schedule;
  schedule.run = [&programs, worker](const Cell& cell, const Allocator& allocator, const OneRun& one) {
    return programs ? programs->run(cell, allocator, one) : run_once(worker, cell, allocator, one);
  };
  schedule.seed = options.seed;
  schedule.timeout = options.timeout;
  schedule.memory = options.memory;
  schedule.mode = options.mode();
  return schedule;
}

}  // namespace

int bench(const BenchOptions& options) {
  const std::string worker = find_worker(kWorker, options.worker);
  std::optional<Programs> programs;
  if (options.programs) programs.emplace(options.program_list);
  const std::vector<Workload> workloads = programs         ? programs->workloads()
                                          : worker.empty() ? known_workloads()
                                                           : list_workloads(worker);
  const std::vector<const Workload*> chosen = choose_workloads(workloads, options.workloads);
  if (worker.empty() && !options.list) throw std::runtime_error(why_no_worker(kWorker));
  Peers peers = find_allocators(options);
  if (programs)
    peers.missing.insert(peers.missing.end(), programs->missing().begin(), programs->missing().end());
  if (options.list) {
    print_list(workloads, peers);
    if (worker.empty()) fputs(("hummock bench: " + why_no_worker(kWorker) + "\n").c_str(), stderr);
    return 0;
  }
  check_writable({options.json, options.csv, options.html});
  demand_active(peers, worker);
  Json document = document_of(options, peers);
  Plan plan = plan_bench(chosen, options, peers.allocators.size());
  announce(plan, peers, document["machine"]);
  document["workloads"] = Json::array();
  for (const Workload* one : chosen) {
    document["workloads"].push_back({{"workload", one->name},
                                     {"group", one->group},
                                     {"title", one->title},
                                     {"description", one->description}});
  }
  catch_interrupt();
  if (programs) programs->make_inputs(chosen);
  document["results"] = measure(plan, peers.allocators, schedule_of(options, worker, programs));
  document["waste"] = interrupted() ? Json::array() : measure_waste(peers.allocators);
  document["skipped"] = Json::array();
  for (const Cell& cell : plan.skipped) document["skipped"].push_back(facts_of(cell));
  finish_document(document);
  fputs(terminal_table(document, isatty(1) != 0).c_str(), stdout);
  fflush(stdout);
  write_outputs(options, document);
  return interrupted() ? 130 : 0;
}

}  // namespace hummock::tool
