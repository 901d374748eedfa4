#include "bench/spaces_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "bench/files.h"
#include "bench/machine.h"
#include "bench/process.h"
#include "bench/worker.h"
#include "outputs.h"
#include "preload.h"

namespace hummock::tool {
namespace {

constexpr const char* kTimes[] = {"seen", "typical", "least"};
constexpr const char* kFigures[] = {"p50", "p99", "p999", "max", "mean"};

std::vector<std::string> choose_scenarios(const BenchSpacesOptions& options) {
  const std::vector<std::string> known = known_scenarios();
  for (const std::string& name : options.scenarios)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw std::runtime_error(
          fmt::format("no scenario is called {}; there are {}", name, fmt::join(known, ", ")));
  return options.scenarios.empty() ? known : options.scenarios;
}

// The middle of a figure's values, one from each round.
double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One scenario on one contestant: the reports of its processes, or why there is none.
struct Entry {
  std::vector<Json> reports;
  std::string error;
  bool disturbed = false;
};

void run_one(const Contestant& contestant, const std::string& scenario, const std::string& worker,
             const BenchSpacesOptions& options, Entry& entry) {
  std::vector<std::string> arguments = {worker, scenario, "--seed", std::to_string(options.seed)};
  if (options.quick) arguments.push_back("--quick");
  if (options.threads != 1) arguments.insert(arguments.end(), {"--threads", std::to_string(options.threads)});
  if (!contestant.space.empty()) arguments.insert(arguments.end(), {"--space", contestant.space});
  std::vector<std::string> environment = contestant.settings;
  environment.push_back(contestant.library.empty() ? "LD_PRELOAD"
                                                   : "LD_PRELOAD=" + preloadable(contestant.library));
  const double timeout = options.quick ? 60 : 300;
  const Outcome outcome = execute(arguments, environment, timeout);
  Json report = outcome.status == 0 ? Json::parse(outcome.out, nullptr, false) : Json();
  if (report.is_object() && report.contains("rows")) {
    entry.reports.push_back(std::move(report));
    entry.disturbed |= outcome.steal_seconds > kStealPart * outcome.seconds;
  } else if (entry.error.empty()) {
    entry.error = outcome.timed_out ? fmt::format("no end within {:.0f} s", timeout)
                                    : fmt::format("exit status {}: {}", outcome.status, outcome.err);
    entry.error.erase(entry.error.find_last_not_of('\n') + 1);
  }
}

Json merged_call(const std::vector<Json>& reports, std::size_t row, const char* call) {
  const Json& first = reports[0]["rows"][row][call];
  if (first.is_null()) return nullptr;
  Json merged = {{"calls", first["calls"]}};
  for (const char* times : kTimes) {
    for (const char* figure : kFigures) {
      std::vector<double> values;
      values.reserve(reports.size());
      for (const Json& report : reports) values.push_back(report["rows"][row][call][times][figure]);
      merged[times][figure] = middle(values);
    }
  }
  return merged;
}

std::vector<std::string> names_of_achieved(unsigned bits) {
  constexpr const char* kNames[] = {"populated", "locked", "huge pages", "not in forks", "shared"};
  std::vector<std::string> names;
  for (unsigned bit = 0; bit < 5; ++bit)
    if ((bits >> bit & 1) != 0) names.emplace_back(kNames[bit]);
  return names;
}

void add_entry(Json& document, const std::string& scenario, const Contestant& contestant,
               const Entry& entry) {
  const std::vector<Json>& reports = entry.reports;
  Json process = {{"scenario", scenario}, {"contestant", contestant.name}, {"rounds", reports.size()}};
  const auto of_first = [&](const char* name) { return reports.empty() ? Json() : reports[0][name]; };
  for (const char* name : {"replays", "calls", "failures", "minor_faults", "peak_bytes", "counter_step_ns"})
    process[name] = of_first(name);
  process["achieved"] = names_of_achieved(reports.empty() ? 0 : reports[0]["achieved"].get<unsigned>());
  process["disturbed"] = entry.disturbed;
  process["error"] = entry.error.empty() ? Json() : Json(entry.error);
  document["processes"].push_back(std::move(process));
  for (std::size_t row = 0; !reports.empty() && row < reports[0]["rows"].size(); ++row) {
    const Json& its = reports[0]["rows"][row];
    document["results"].push_back({{"scenario", scenario},
                                   {"size", its["size"]},
                                   {"blocks", its["blocks"]},
                                   {"contestant", contestant.name},
                                   {"malloc", merged_call(reports, row, "malloc")},
                                   {"free", merged_call(reports, row, "free")}});
  }
}

// All contestants run a scenario one after another, in an order drawn anew; then comes the next scenario;
// then all again.
void measure_all(Json& document, const std::vector<std::string>& scenarios, const Contestants& contestants,
                 const std::string& worker, const BenchSpacesOptions& options, unsigned rounds) {
  std::map<std::pair<std::size_t, std::size_t>, Entry> entries;
  std::mt19937_64 random(options.seed);
  std::vector<std::size_t> order(contestants.all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t scenario = 0; scenario < scenarios.size(); ++scenario) {
      std::shuffle(order.begin(), order.end(), random);
      fputs(fmt::format("round {} of {}: {}\n", round + 1, rounds, scenarios[scenario]).c_str(), stderr);
      for (const std::size_t who : order) {
        if (interrupted()) continue;
        run_one(contestants.all[who], scenarios[scenario], worker, options, entries[{scenario, who}]);
      }
    }
  }
  for (const auto& [which, entry] : entries)
    add_entry(document, scenarios[which.first], contestants.all[which.second], entry);
}

}  // namespace

int bench_spaces(const BenchSpacesOptions& options) {
  const std::vector<std::string> scenarios = choose_scenarios(options);
  const std::string worker = demand_worker("hummock-bench-spaces", options.worker);
  const Contestants contestants = find_contestants(options, worker);
  check_writable({options.json, options.csv, options.html});
  const unsigned rounds = options.rounds != 0 ? options.rounds : options.quick ? 1 : 3;
  Json document = {{"format", kFormat},
                   {"program", "hummock bench spaces"},
                   {"date", date_now()},
                   {"mode", options.quick ? "quick" : "default"},
                   {"command", options.command},
                   {"seed", options.seed},
                   {"rounds", rounds},
                   {"threads", options.threads},
                   {"machine", machine_facts()},
                   {"contestants", Json::array()},
                   {"missing", contestants.missing},
                   {"printed", printed_figures()},
                   {"processes", Json::array()},
                   {"results", Json::array()}};
  for (const Contestant& one : contestants.all)
    document["contestants"].push_back({{"name", one.name},
                                       {"what", one.what},
                                       {"version", one.version},
                                       {"library", one.library},
                                       {"origin", one.origin},
                                       {"settings", one.settings},
                                       {"ours", one.ours}});
  catch_interrupt();
  measure_all(document, scenarios, contestants, worker, options, rounds);
  document["verdict"] = spaces_verdict(document);
  document["interrupted"] = interrupted();
  fputs(spaces_text(document, options.times).c_str(), stdout);
  fflush(stdout);
  write_each({{options.json, write_json}, {options.csv, write_spaces_csv}, {options.html, write_html}},
             document);
  bool failed = false;
  for (const Json& process : document["processes"]) failed |= !process["error"].is_null();
  return interrupted() ? 130 : failed ? 1 : 0;
}

}  // namespace hummock::tool
