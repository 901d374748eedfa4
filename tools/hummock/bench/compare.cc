#include "bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/stats.h"

namespace hummock::tool {
namespace {

// A change of one measure; a ratio above 1 is worse.
struct Change {
  std::string what;
  double ratio = 1;
  bool certain = false;  // the spreads of both do not touch
};

struct Changes {
  std::map<std::string, std::vector<Change>> time, memory;  // by allocator
  std::size_t only_before = 0, only_after = 0;
};

std::string key_of(const Json& result) {
  return cell_name(result) + ": " + result.value("allocator", "");
}

bool change_of(const Json& before, const Json& after, const char* measure, bool more_is_better,
               Change& change) {
  if (!before[measure].is_object() || !after[measure].is_object()) return false;
  const double was = before[measure]["median"], is = after[measure]["median"];
  if (was <= 0 || is <= 0) return false;
  change.what = cell_name(after);
  change.ratio = more_is_better ? was / is : is / was;
  change.certain =
      before[measure]["high"] < after[measure]["low"] || before[measure]["low"] > after[measure]["high"];
  return true;
}

Changes changes_between(const Json& before, const Json& after) {
  std::map<std::string, const Json*> old;
  for (const Json& result : before["results"]) old[key_of(result)] = &result;
  Changes changes;
  for (const Json& result : after["results"]) {
    const auto found = old.find(key_of(result));
    if (found == old.end()) {
      ++changes.only_after;
      continue;
    }
    const std::string allocator = result["allocator"];
    Change change;
    if (change_of(*found->second, result, "ops_per_second", true, change))
      changes.time[allocator].push_back(change);
    if (change_of(*found->second, result, "peak_bytes", false, change))
      changes.memory[allocator].push_back(change);
    old.erase(found);
  }
  changes.only_before = old.size();
  return changes;
}

std::string mean_line(const std::string& allocator, const char* kind, const std::vector<Change>& changes) {
  std::vector<double> ratios;
  std::size_t better = 0, worse = 0;
  for (const Change& change : changes) {
    ratios.push_back(change.ratio);
    if (change.certain && change.ratio < 1 - kTie) ++better;
    if (change.certain && change.ratio > 1 + kTie) ++worse;
  }
  return fmt::format("{:18}{:8}{:8.3f}{:8}{:8}{:8}\n", allocator, kind, geometric_mean(ratios),
                     changes.size(), better, worse);
}

// The changes beyond the spread, largest first.
std::string largest(std::vector<Change> changes, const std::string& allocator, const char* kind) {
  changes.erase(
      std::remove_if(changes.begin(), changes.end(),
                     [](const Change& one) { return !one.certain || std::abs(one.ratio - 1) <= kTie; }),
      changes.end());
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(std::log(a.ratio)) > std::abs(std::log(b.ratio));
  });
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < 10; ++i)
    text += fmt::format("  {} {} {:+.1f} %  {}: {}\n", changes[i].ratio > 1 ? "worse: " : "better:", kind,
                        (changes[i].ratio - 1) * 100, allocator, changes[i].what);
  return text;
}

bool same_machine(const Json& before, const Json& after) {
  for (const char* fact : {"cpu", "cores", "kernel", "thp"})
    if (before["machine"].value(fact, Json()) != after["machine"].value(fact, Json())) return false;
  return true;
}

}  // namespace

std::string comparison(const Json& before, const Json& after, double& worse) {
  const Changes changes = changes_between(before, after);
  std::string text = fmt::format("before: {} ({})\nafter:  {} ({})\n\n", before.value("date", ""),
                                 before.value("mode", ""), after.value("date", ""), after.value("mode", ""));
  if (!same_machine(before, after)) text += "The two are from different machines or settings.\n\n";
  text +=
      fmt::format("{:18}{:8}{:>8}{:>8}{:>8}{:>8}\n", "allocator", "", "ratio", "cells", "better", "worse");
  std::string details;
  for (const auto& [allocator, time] : changes.time) {
    text += mean_line(allocator, "time", time);
    details += largest(time, allocator, "time");
  }
  for (const auto& [allocator, memory] : changes.memory) {
    text += mean_line(allocator, "memory", memory);
    details += largest(memory, allocator, "memory");
  }
  text +=
      "\nratio: after to before, geometric mean, lower is better; better and worse count changes by more "
      "than\n"
      "2 % in which the ranges of the runs do not touch\n";
  if (!details.empty()) text += "\n" + details;
  if (changes.only_before + changes.only_after > 0)
    text +=
        fmt::format("\nin one of them alone: {} before, {} after\n", changes.only_before, changes.only_after);
  worse = 0;
  for (const auto* kind : {&changes.time, &changes.memory})
    if (const auto own = kind->find("hummock"); own != kind->end())
      for (const Change& change : own->second)
        if (change.certain) worse = std::max(worse, change.ratio - 1);
  return text;
}

int compare_results(const CompareOptions& options) {
  double worse = 0;
  fputs(comparison(read_document(options.before), read_document(options.after), worse).c_str(), stdout);
  if (options.gate <= 0 || worse * 100 <= options.gate) return 0;
  fprintf(stderr, "hummock bench compare: worse by %.1f %%, more than %.1f %%\n", worse * 100, options.gate);
  return 1;
}

}  // namespace hummock::tool
