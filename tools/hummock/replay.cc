#include "replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/plan.h"
#include "bench/process.h"
#include "bench/schedule.h"
#include "bench/stats.h"
#include "bench/table.h"
#include "bench/worker.h"
#include "outputs.h"
#include "replay_plan.h"
#include "replay_verdict.h"

namespace hummock::tool {
namespace {

std::string line_of(const TraceProcess& process) {
  return fmt::format("{} ({}): {} calls in {} thread{}, {} blocks and {} resizes of {} in all",
                     process.program, process.pid, process.calls, process.threads,
                     process.threads == 1 ? "" : "s", process.allocations, process.resizes,
                     short_bytes(static_cast<double>(process.bytes)));
}

void print_list(const TraceSummary& trace) {
  for (const TraceProcess& one : trace.processes) fputs((line_of(one) + "\n").c_str(), stdout);
}

std::uint32_t choose(const TraceSummary& trace, const ReplayOptions& options) {
  const auto& all = trace.processes;
  const auto fewer = [](const auto& a, const auto& b) { return a.calls < b.calls; };
  auto chosen = std::max_element(all.begin(), all.end(), fewer);
  if (options.process != 0) {
    // One that became another program has its number twice.
    const auto meant = [&](const TraceProcess& one) { return one.pid == options.process; };
    chosen = all.end();
    for (auto one = all.begin(); one != all.end(); ++one)
      if (meant(*one) && (chosen == all.end() || fewer(*chosen, *one))) chosen = one;
    if (chosen == all.end())
      throw std::runtime_error(fmt::format("--process: {} has no process {}", options.file, options.process));
  }
  if (chosen == all.end() || chosen->calls == 0) throw std::runtime_error(options.file + " has no calls");
  return static_cast<std::uint32_t>(chosen - all.begin());
}

// What of the program is not in the trace, each a line.
void warn(const TraceSummary& trace, const TraceProcess& process, const std::string& file) {
  std::vector<std::string> lines;
  if (trace.cut) lines.push_back("the file is cut short: the complete part is replayed");
  if (process.dropped != 0)
    lines.push_back(fmt::format("{} calls were dropped while it was recorded", process.dropped));
  if (process.unknown != 0)
    lines.push_back(
        fmt::format("{} calls on blocks that were not seen before are left out", process.unknown));
  if (trace.processes.size() > 1)
    lines.push_back(
        fmt::format("{} programs are in it: --list names them, --process chooses", trace.processes.size()));
  for (const std::string& line : lines) fputs(fmt::format("{}: {}\n", file, line).c_str(), stderr);
}

BenchOptions bench_options(const ReplayOptions& options) {
  BenchOptions bench;
  for (const std::string& name : options.with) bench.against.push_back(name == "glibc" ? "system" : name);
  bench.repeat = options.repeat;
  bench.timeout = options.timeout;
  bench.json = options.json;
  bench.csv = options.csv;
  bench.html = options.html;
  bench.library = options.library;
  bench.command = options.command;
  return bench;
}

// The allocators that are meant: where some are named, those alone.
Peers chosen_allocators(const BenchOptions& bench) {
  Peers peers = find_allocators(bench);
  const auto& named = bench.against;
  if (named.empty()) return peers;
  // The bench always takes these two.
  const auto unnamed = [&](const Allocator& one) {
    const bool always = one.name == "hummock" || one.name == bench.baseline;
    return always && std::none_of(named.begin(), named.end(), [&](const std::string& name) {
             return name == one.name || name.rfind(one.name + "=", 0) == 0;
           });
  };
  std::erase_if(peers.allocators, unnamed);
  if (peers.allocators.empty()) throw std::runtime_error("--with: none of these allocators is installed");
  return peers;
}

Workload workload_of(const TraceProcess& process, const PlanHead& head) {
  Workload workload;
  workload.name = process.program.empty() ? "program" : process.program;
  workload.group = "replay";
  workload.title = workload.name + " replayed";
  workload.description = line_of(process);
  workload.unit = "calls";
  workload.whole = {true, {head.threads}, {0}, 1, head.allocations + head.releases + head.resizes, 0};
  std::fill(std::begin(workload.sets), std::end(workload.sets), workload.whole);
  return workload;
}

// What was replayed is what was recorded, or the run is an error.
std::string difference(const Json& run, const PlanHead& head) {
  const std::pair<const char*, std::uint64_t> counts[] = {{"allocations", head.allocations},
                                                          {"releases", head.releases},
                                                          {"resizes", head.resizes},
                                                          {"bytes", head.bytes}};
  for (const auto& [name, expected] : counts) {
    const std::uint64_t got = run.value(name, std::uint64_t{0});
    if (got != expected) return fmt::format("{} {} were replayed, and {} recorded", got, name, expected);
  }
  return "";
}

Json run_replay(const std::string& worker, const ReplayPlan& plan, const ReplayOptions& options,
                const Allocator& allocator, const OneRun& one) {
  std::vector<std::string> arguments = {worker,        plan.path(), "--touch",
                                        options.touch, "--window",  std::to_string(options.window)};
  if (one.first && options.settle > 0)
    arguments.insert(arguments.end(), {"--settle", fmt::format("{:g}", options.settle)});
  const Outcome outcome = execute(arguments, environment_of(allocator), one.timeout, one.memory);
  std::string error = what_failed(outcome, one.timeout);
  Json run = error.empty() ? Json::parse(outcome.out, nullptr, false) : Json();
  if (error.empty() && !run.is_object()) error = "the worker's report was not understood";
  if (error.empty()) error = difference(run, plan.head());
  if (!error.empty()) return {{"error", error}, {"took_seconds", outcome.seconds}};
  if (!one.first) run.erase("series");
  set_circumstances(run, outcome);
  return run;
}

void print_counts(const PlanHead& head, const Json& document) {
  fputs(fmt::format("recorded: {} allocations, {} resizes, {} frees, {} bytes\n", head.allocations,
                    head.resizes, head.releases, head.bytes)
            .c_str(),
        stdout);
  for (const Json& result : document["results"]) {
    if (result["runs"].empty()) continue;
    const Json& run = result["runs"][0];
    fputs(fmt::format("replayed: {} allocations, {} resizes, {} frees, {} bytes on {}\n",
                      run.value("allocations", std::uint64_t{0}), run.value("resizes", std::uint64_t{0}),
                      run.value("releases", std::uint64_t{0}), run.value("bytes", std::uint64_t{0}),
                      result.value("allocator", ""))
              .c_str(),
          stdout);
  }
}

}  // namespace

int replay(const ReplayOptions& options) {
  const TraceSummary trace = read_trace(options.file);
  if (options.list) {
    print_list(trace);
    return 0;
  }
  const std::uint32_t process = choose(trace, options);
  const std::string worker = demand_worker("hummock-replay", options.worker);
  const BenchOptions bench = bench_options(options);
  const Peers peers = chosen_allocators(bench);
  check_writable({bench.json, bench.csv, bench.html});
  demand_active(peers, worker);
  warn(trace, trace.processes[process], options.file);
  catch_interrupt();
  const ReplayPlan plan(options.file, process);
  const Workload workload = workload_of(trace.processes[process], plan.head());
  Plan cells;
  cells.cells = {{&workload, plan.head().threads, 0, 1, workload.whole.operations, options.settle}};
  cells.repeat = options.repeat;
  cells.repeat_fixed = true;
  ScheduleOptions schedule;
  schedule.run = [&](const Cell&, const Allocator& allocator, const OneRun& one) {
    return run_replay(worker, plan, options, allocator, one);
  };
  schedule.timeout = options.timeout;
  Json document = document_of(bench, peers);
  const auto is_baseline = [&](const Allocator& one) { return one.name == bench.baseline; };
  if (std::none_of(peers.allocators.begin(), peers.allocators.end(), is_baseline))
    document["baseline"] = peers.allocators.front().name;
  document["results"] = measure(cells, peers.allocators, schedule);
  finish_document(document);
  document["verdict"] = replay_verdict(document["results"]);
  print_counts(plan.head(), document);
  fputs(replay_table(document["results"]).c_str(), stdout);
  for (const Json& line : document["verdict"]) fputs((line.get<std::string>() + "\n").c_str(), stdout);
  fflush(stdout);
  write_outputs(bench, document);
  const auto failed = [](const Json& result) { return !result["error"].is_null(); };
  if (interrupted()) return 130;
  return std::any_of(document["results"].begin(), document["results"].end(), failed) ? 1 : 0;
}

}  // namespace hummock::tool
