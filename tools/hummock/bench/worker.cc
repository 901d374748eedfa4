#include "bench/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/process.h"

namespace hummock::tool {
namespace {

// Above these, as kStealPart, a run counts as disturbed: processor time of others, as a part of the run's
// length (and more than the clock of /proc/stat can be wrong).
constexpr double kOthersPart = 0.10;
constexpr double kOthersLeast = 0.05;

template <typename T>
std::vector<T> numbers(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return {};
  return found->get<std::vector<T>>();
}

// Modes are true, false, null or an object; one that is not named has all cells, the quick one none.
CellSet set_of(const Json& entry, const char* mode, const CellSet& whole, bool otherwise) {
  CellSet set = whole;
  const auto found = entry.find(mode);
  set.present =
      found == entry.end() ? otherwise : found->is_object() || (found->is_boolean() && found->get<bool>());
  if (found == entry.end() || !found->is_object()) return set;
  if (const auto threads = numbers<unsigned>(*found, "threads"); !threads.empty()) set.threads = threads;
  if (const auto sizes = numbers<std::uint64_t>(*found, "sizes"); !sizes.empty()) set.sizes = sizes;
  set.seconds = found->value("seconds", 0.0);
  set.operations = found->value("ops", std::uint64_t{0});
  set.settle = found->value("settle", -1.0);
  return set;
}

Workload workload_of(const Json& entry) {
  Workload workload;
  workload.name = entry.at("name");
  workload.group = entry.value("group", "");
  workload.title = entry.value("title", workload.name);
  workload.description = entry.value("description", "");
  workload.unit = entry.value("unit", "operations");
  workload.whole.present = true;
  workload.whole.threads = numbers<unsigned>(entry, "threads");
  workload.whole.sizes = numbers<std::uint64_t>(entry, "sizes");
  if (workload.whole.threads.empty()) workload.whole.threads = {1};
  if (workload.whole.sizes.empty()) workload.whole.sizes = {0};
  workload.sets[static_cast<int>(BenchMode::kQuick)] = set_of(entry, "quick", workload.whole, false);
  workload.sets[static_cast<int>(BenchMode::kDefault)] = set_of(entry, "default", workload.whole, true);
  workload.sets[static_cast<int>(BenchMode::kFull)] = set_of(entry, "full", workload.whole, true);
  return workload;
}

// The last line that is not empty: what went wrong, or at least the end of it.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

std::vector<std::string> arguments_for(const std::string& worker, const Cell& cell, const OneRun& options) {
  std::vector<std::string> arguments = {worker, cell.workload->name};
  const auto add = [&arguments](const char* name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  add("--threads", std::to_string(cell.threads));
  if (cell.size != 0) add("--size", std::to_string(cell.size));
  if (cell.operations != 0) {
    add("--ops", std::to_string(cell.operations));
  } else {
    add("--seconds", fmt::format("{:g}", cell.seconds));
  }
  add("--seed", std::to_string(options.seed));
  if (cell.settle >= 0) add("--settle", options.first ? fmt::format("{:g}", cell.settle) : "0");
  if (options.first) arguments.push_back("--series");
  return arguments;
}

void set_derived(Json& run) {
  const double operations = run.value("operations", 0.0);
  const double seconds = run.value("seconds", 0.0);
  if (!run.contains("ops_per_second") && seconds > 0) run["ops_per_second"] = operations / seconds;
  if (operations > 0) run["cpu_ns_per_operation"] = run.value("cpu_seconds", 0.0) * 1e9 / operations;
}

}  // namespace

std::string what_failed(const Outcome& outcome, double timeout) {
  if (interrupted()) return "interrupted";
  if (outcome.too_large) return "ended because it took too much memory";
  if (outcome.timed_out) return fmt::format("no end within {:.0f} s", timeout);
  std::string line = last_line(outcome.err);
  if (outcome.err.find("cannot be preloaded") != std::string::npos) return line;
  if (outcome.status == 0) return "";
  const std::string how = outcome.status > 128 ? fmt::format("killed by signal {}", outcome.status - 128)
                                               : fmt::format("exit status {}", outcome.status);
  return line.empty() ? how : how + ": " + line;
}

void set_circumstances(Json& run, const Outcome& outcome) {
  set_derived(run);
  run["took_seconds"] = outcome.seconds;
  run["others_cpu_seconds"] = std::max(0.0, outcome.other_seconds);
  run["disturbed"] = outcome.other_seconds > std::max(kOthersLeast, kOthersPart * outcome.seconds) ||
                     outcome.steal_seconds > kStealPart * outcome.seconds;
}

std::string find_worker(const std::string& name, const std::string& given) {
  std::string worker = given.empty() ? find_file(name, "../../bin/" + name, "build/" + name)
                                     : std::filesystem::absolute(given).string();
  return !worker.empty() && access(worker.c_str(), X_OK) == 0 ? worker : "";
}

std::string why_no_worker(const std::string& name) {
  const char* maker = name == "hummock-replay" ? "make" : "make bench";
  return fmt::format("{} was not found: `{}` in Hummock's source tree builds it, --worker names it elsewhere",
                     name, maker);
}

std::string demand_worker(const std::string& name, const std::string& given) {
  std::string worker = find_worker(name, given);
  if (worker.empty()) throw std::runtime_error(why_no_worker(name));
  return worker;
}

std::vector<Workload> list_workloads(const std::string& worker) {
  const Outcome outcome = execute({worker, "--list"}, {"LD_PRELOAD"}, 60);
  if (outcome.status != 0) throw std::runtime_error(worker + " --list failed: " + last_line(outcome.err));
  std::vector<Workload> workloads;
  for (const Json& entry : Json::parse(outcome.out)) workloads.push_back(workload_of(entry));
  if (workloads.empty()) throw std::runtime_error(worker + " offers no workloads");
  return workloads;
}

Json run_once(const std::string& worker, const Cell& cell, const Allocator& allocator,
              const OneRun& options) {
  const Outcome outcome = execute(arguments_for(worker, cell, options), environment_of(allocator),
                                  options.timeout, options.memory);
  std::string error = what_failed(outcome, options.timeout);
  Json run = error.empty() ? Json::parse(outcome.out, nullptr, false) : Json();
  const auto number = [&run](const char* name) {
    return run.is_object() && run.contains(name) && run[name].is_number() ? run[name].get<double>() : 0;
  };
  if (error.empty() && (number("operations") <= 0 || number("seconds") <= 0))
    error = "the worker's report was not understood";
  if (!error.empty()) return {{"error", error}, {"took_seconds", outcome.seconds}};
  for (const char* known : {"workload", "threads", "size", "seed"}) run.erase(known);
  set_circumstances(run, outcome);
  return run;
}

}  // namespace hummock::tool
