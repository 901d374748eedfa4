#include "bench/stats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace hummock::tool {
namespace {

constexpr const char* kMeasures[] = {"ops_per_second",       "seconds",    "cpu_seconds",
                                     "cpu_ns_per_operation", "peak_bytes", "settled_bytes",
                                     "minor_faults",         "live_bytes", "system_seconds"};
constexpr const char* kPercentiles[] = {"p50", "p90", "p99", "p999", "max", "mean"};

Json json_of(const Spread& spread) {
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

// Runs beside which nothing else went on count alone, when there are at least two (or no more were wanted).
std::vector<const Json*> runs_that_count(const Json& runs) {
  std::vector<const Json*> all, quiet;
  for (const Json& run : runs) {
    all.push_back(&run);
    if (!run.value("disturbed", false)) quiet.push_back(&run);
  }
  return quiet.size() >= std::min<std::size_t>(2, all.size()) ? quiet : all;
}

std::vector<double> values_of(const std::vector<const Json*>& runs, const char* name) {
  std::vector<double> values;
  for (const Json* run : runs) {
    const auto found = run->find(name);
    if (found != run->end() && found->is_number()) values.push_back(found->get<double>());
  }
  return values;
}

Json latency_of(const std::vector<const Json*>& runs) {
  Json latency;
  for (const char* percentile : kPercentiles) {
    std::vector<double> values;
    for (const Json* run : runs) {
      const auto found = run->find("latency");
      if (found != run->end() && found->is_object() && found->contains(percentile))
        values.push_back((*found)[percentile].get<double>());
    }
    if (values.empty()) continue;
    if (latency.is_null()) latency["unit"] = "ns";
    latency[percentile] = spread_of(values).median;
  }
  return latency;
}

double median_of(const Json& result, const char* measure) {
  const auto found = result.find(measure);
  return found == result.end() || !found->is_object() ? 0 : found->value("median", 0.0);
}

// A run's figure, where runs may do more or less in the same time.
double of_operation(const Json& result, const char* measure) {
  const double operations = median_of(result, "ops_per_second") * median_of(result, "seconds");
  return operations > 0 ? median_of(result, measure) / operations : 0;
}

// One kind of ratio; lower is better. `cost` is what a ratio is taken of: time or memory of one operation.
struct Kind {
  const char* name;
  double (*cost)(const Json& result);
};

constexpr Kind kKinds[] = {
    {"time_ratio",
     [](const Json& result) {
       const double speed = median_of(result, "ops_per_second");
       return speed > 0 ? 1 / speed : 0;
     }},
    {"cpu_ratio", [](const Json& result) { return median_of(result, "cpu_ns_per_operation"); }},
    {"memory_ratio", [](const Json& result) { return median_of(result, "peak_bytes"); }},
    {"fault_ratio", [](const Json& result) { return of_operation(result, "minor_faults"); }},
    {"system_ratio", [](const Json& result) { return of_operation(result, "system_seconds"); }},
};

using CellRuns = std::vector<Json*>;

std::vector<CellRuns> cells_of(Json& document) {
  std::map<std::tuple<std::string, unsigned, double>, std::size_t> places;
  std::vector<CellRuns> cells;
  for (Json& result : document["results"]) {
    const auto key =
        std::make_tuple(result.value("workload", ""), result.value("threads", 0u), result.value("size", 0.0));
    const auto [place, is_new] = places.emplace(key, cells.size());
    if (is_new) cells.emplace_back();
    cells[place->second].push_back(&result);
  }
  return cells;
}

void set_ratio(const CellRuns& cell, const Kind& kind, const std::string& baseline) {
  for (Json* own : cell) {
    double reference = 0, best = 0;
    for (const Json* other : cell) {
      const double cost = kind.cost(*other);
      if ((*other)["allocator"] == baseline) reference = cost;
      if (other != own && cost > 0 && (best == 0 || cost < best)) best = cost;
    }
    const double cost = kind.cost(*own);
    Json& ratio = (*own)[kind.name];
    ratio = {{"vs_baseline", nullptr}, {"vs_best", nullptr}};
    if (cost > 0 && reference > 0) ratio["vs_baseline"] = cost / reference;
    if (cost > 0 && best > 0) ratio["vs_best"] = cost / best;
  }
}

// Geometric means and worst cells of one allocator's ratios of one kind.
void sum_up_kind(const std::vector<const Json*>& results, const std::string& kind, Json& means, Json& worst) {
  for (const char* against : {"vs_baseline", "vs_best"}) {
    std::vector<double> ratios;
    const Json* worst_result = nullptr;
    double most = 0;
    for (const Json* result : results) {
      const Json& ratio = (*result)[kind][against];
      if (!ratio.is_number()) continue;
      ratios.push_back(ratio.get<double>());
      if (worst_result == nullptr || ratios.back() > most) {
        worst_result = result;
        most = ratios.back();
      }
    }
    means[against] = ratios.empty() ? Json() : Json(geometric_mean(ratios));
    worst[against] = nullptr;
    if (worst_result == nullptr) continue;
    worst[against] = {{"workload", (*worst_result)["workload"]},
                      {"threads", (*worst_result)["threads"]},
                      {"size", (*worst_result)["size"]},
                      {"ratio", most}};
  }
}

Json summary_of_one(const std::string& allocator, const std::vector<const Json*>& results) {
  Json one = {{"allocator", allocator}};
  for (const char* kind : {"time", "cpu", "memory"}) {
    Json means, worst;
    sum_up_kind(results, std::string(kind) + "_ratio", means, worst);
    one[std::string(kind) + "_ratio_geomean"] = means;
    one[std::string("worst_") + kind] = worst;
  }
  int wins = 0, ties = 0, losses = 0, errors = 0;
  for (const Json* result : results) {
    const Json& ratio = (*result)["time_ratio"]["vs_best"];
    if (!(*result)["error"].is_null()) ++errors;
    if (!ratio.is_number()) continue;
    const double value = ratio.get<double>();
    ++(value < 1 - kTie ? wins : value > 1 + kTie ? losses : ties);
  }
  one.update(
      {{"cells", results.size()}, {"wins", wins}, {"ties", ties}, {"losses", losses}, {"errors", errors}});
  return one;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

void sum_up_runs(Json& result) {
  Json all = std::move(result["runs"]);  // a new key in `result` may move what is in it
  const std::vector<const Json*> runs = runs_that_count(all);
  for (const char* measure : kMeasures) {
    const std::vector<double> values = values_of(runs, measure);
    result[measure] = values.empty() ? Json() : json_of(spread_of(values));
  }
  result["latency"] = latency_of(runs);
  result["disturbed"] =
      std::any_of(runs.begin(), runs.end(), [](const Json* run) { return run->value("disturbed", false); });
  for (const char* extra : {"series", "rows"}) {
    result[extra] = nullptr;
    for (const Json* run : runs)
      if (run->contains(extra) && result[extra].is_null()) result[extra] = (*run)[extra];
  }
  for (Json& run : all)
    for (const char* extra : {"series", "rows"}) run.erase(extra);
  result["runs"] = std::move(all);
}

void set_ratios(Json& document) {
  const std::string baseline = document.value("baseline", "system");
  for (const CellRuns& cell : cells_of(document))
    for (const Kind& kind : kKinds) set_ratio(cell, kind, baseline);
}

Json summary_of(const Json& document) {
  Json summary = Json::array();
  for (const Json& allocator : document["allocators"]) {
    const std::string name = allocator["name"];
    std::vector<const Json*> results;
    for (const Json& result : document["results"])
      if (result["allocator"] == name) results.push_back(&result);
    summary.push_back(summary_of_one(name, results));
  }
  return summary;
}

}  // namespace hummock::tool
