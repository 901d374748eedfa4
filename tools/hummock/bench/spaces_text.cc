// A result of hummock bench spaces as tables, as lines for a spreadsheet, and what it comes to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/spaces_bench.h"
#include "outputs.h"

namespace hummock::tool {
namespace {

constexpr const char* kCalls[] = {"malloc", "free"};
constexpr double kEven = 1.02;  // two per cent are no loss, here as in hummock bench

const char* title_of(const std::string& figure) {
  if (figure == "p50") return "median";
  return figure == "p99" ? "p99" : figure == "p999" ? "p99.9" : "maximum";
}

std::vector<std::string> contestants_of(const Json& document) {
  std::vector<std::string> names;
  for (const Json& one : document["contestants"]) names.push_back(one["name"]);
  return names;
}

// Three significant digits; the unit of a table is nanoseconds.
std::string number(double value) {
  if (value < 0) return "-";
  if (value < 99.95) return fmt::format("{:.1f}", value);
  if (value < 1e6) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}M", value / 1e6);
}

// The figure of a row's call, or -1.
double figure_of(const Json& result, const char* call, const std::string& times, const char* figure) {
  return result[call].is_null() ? -1 : result[call][times][figure].get<double>();
}

const Json* find_result(const Json& document, const std::string& scenario, const Json& row,
                        const std::string& contestant) {
  for (const Json& result : document["results"])
    if (result["scenario"] == scenario && result["size"] == row["size"] &&
        result["blocks"] == row["blocks"] && result["contestant"] == contestant)
      return &result;
  return nullptr;
}

// The rows of a scenario, once each, in their order.
std::vector<Json> rows_of(const Json& document, const std::string& scenario) {
  std::vector<Json> rows;
  for (const Json& result : document["results"]) {
    if (result["scenario"] != scenario) continue;
    const Json row = {{"size", result["size"]}, {"blocks", result["blocks"]}};
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  return rows;
}

double printed_of(const Json& document, const char* call, std::uint64_t size, std::size_t column) {
  for (const Json& row : document["printed"][call])
    if (row["size"] == size) return row["nanoseconds"][column];
  return -1;
}

std::string head(const std::string& first, const std::vector<std::string>& names) {
  std::string text = fmt::format("{:>10}", first);
  for (const std::string& name : names)
    text += fmt::format(" {:>{}}", name, std::max<std::size_t>(name.size(), 9));
  return text + "\n";
}

std::string label_of(const Json& row) {
  if (row["blocks"] != 0) return row["blocks"].dump();
  return row["size"] == 0 ? "all" : row["size"].dump();
}

// One call and one figure of a scenario: a line for each row, a column for each contestant; of the sequential
// one, also what was printed elsewhere.
std::string table(const Json& document, const std::string& scenario, const char* call,
                  const std::string& times, const char* figure) {
  std::vector<std::string> names = contestants_of(document);
  const std::size_t measured = names.size();
  const bool beside = scenario == "sequential" && std::string(figure) == "p50";
  if (beside)
    for (const Json& column : document["printed"]["columns"]) names.push_back(column);
  const std::vector<Json> rows = rows_of(document, scenario);
  std::string text = head(!rows.empty() && rows[0]["blocks"] != 0 ? "n" : "bytes", names);
  for (const Json& row : rows) {
    std::string line = fmt::format("{:>10}", label_of(row));
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Json* result = i < measured ? find_result(document, scenario, row, names[i]) : nullptr;
      const double value = i >= measured       ? printed_of(document, call, row["size"], i - measured)
                           : result != nullptr ? figure_of(*result, call, times, figure)
                                               : -1;
      any |= value >= 0;
      line += fmt::format(" {:>{}}", number(value), std::max<std::size_t>(names[i].size(), 9));
    }
    if (any) text += line + "\n";
  }
  return text;
}

const char* scenario_title(const std::string& scenario) {
  if (scenario == "churn") return "Random sizes from 16 bytes to 4 MiB, 70 % of 512 MiB in use";
  if (scenario == "near-full") return "Random sizes from 16 bytes to 64 KiB, 90 % of 64 MiB in use";
  if (scenario == "alternating") return "Every other one of n blocks of 64 bytes freed, and allocated again";
  return "Every other one of n blocks of 64 bytes freed; then one block of 4096 bytes";
}

std::string sequential_text(const Json& document, const std::string& times) {
  std::string text;
  for (const char* figure : {"p50", "p99", "p999", "max"})
    for (const char* call : kCalls)
      text += fmt::format("\nTime to {}, nanoseconds, {}\n",
                          std::string(call) == "malloc" ? "allocate" : "free", title_of(figure)) +
              table(document, "sequential", call, times, figure);
  return text;
}

// A scenario of many sizes, by its row of all of them.
std::string churn_text(const Json& document, const std::string& scenario, const std::string& times) {
  const std::vector<std::string> names = contestants_of(document);
  const Json row = {{"size", 0}, {"blocks", 0}};
  std::string text;
  for (const char* call : kCalls) {
    text += head(call, names);
    const auto line = [&](const std::string& label, const std::string& of, const char* figure) {
      text += fmt::format("{:>10}", label);
      for (const std::string& name : names) {
        const Json* result = find_result(document, scenario, row, name);
        text += fmt::format(" {:>{}}", number(result == nullptr ? -1 : figure_of(*result, call, of, figure)),
                            std::max<std::size_t>(name.size(), 9));
      }
      text += "\n";
    };
    for (const char* figure : {"p50", "p99", "p999", "max"}) line(title_of(figure), times, figure);
    line("least max", "least", "max");
  }
  return text;
}

std::string few_text(const Json& document, const std::string& scenario, const std::string& times) {
  if (scenario == "holes")  // one call of a kind in a replay: there is no more than its median
    return "malloc, nanoseconds\n" + table(document, scenario, "malloc", times, "p50") +
           "free, nanoseconds\n" + table(document, scenario, "free", times, "p50");
  std::string text;
  for (const char* call : kCalls)
    for (const char* figure : {"p50", "p99", "p999", "max"})
      text += fmt::format("{}, nanoseconds, {}\n", call, title_of(figure)) +
              table(document, scenario, call, times, figure);
  return text;
}

std::string other_text(const Json& document, const std::string& scenario, const std::string& times) {
  const bool many = scenario == "churn" || scenario == "near-full";
  return fmt::format("\n{}\n", scenario_title(scenario)) +
         (many ? churn_text(document, scenario, times) : few_text(document, scenario, times));
}

std::string verdict_text(const Json& document) {
  std::string text = "\nSequential, typical times, against the best of the others at each size\n";
  for (const Json& one : document["verdict"]) {
    text += fmt::format("{} {} {}: at or below at {} of {} sizes; at or below RTX64 4.x as printed at {}\n",
                        one["contestant"].get<std::string>(), one["call"].get<std::string>(),
                        title_of(one["figure"]), one["best"].get<int>(), one["sizes"].get<int>(),
                        one["printed"].get<int>());
    std::string above;
    for (const Json& loss : one["above"])
      above += fmt::format("{}{} {} ({} {})", above.empty() ? "  above at " : ", ",
                           short_bytes(loss["size"].get<double>()), number(loss["own"]),
                           loss["by"].get<std::string>(), number(loss["best"]));
    if (!above.empty()) text += above + "\n";
  }
  return text;
}

std::string processes_text(const Json& document) {
  std::string text;
  for (const Json& one : document["processes"]) {
    const std::string who =
        one["scenario"].get<std::string>() + " on " + one["contestant"].get<std::string>();
    if (!one["error"].is_null()) text += "error: " + who + ": " + one["error"].get<std::string>() + "\n";
    if (one["failures"].is_number() && one["failures"] != 0)
      text += fmt::format("{}: {} mallocs returned null\n", who, one["failures"].get<std::uint64_t>());
    if (one["minor_faults"].is_number() && one["minor_faults"] != 0)
      text +=
          fmt::format("{}: {} page faults in timed replays\n", who, one["minor_faults"].get<std::uint64_t>());
  }
  return text.empty() ? text : "\n" + text;
}

// The lowest figure of those that are not Hummock's, and whose it is; -1 when there is none.
std::pair<double, std::string> best_other(const Json& document, const Json& row, const char* call,
                                          const char* figure) {
  std::pair<double, std::string> best = {-1, ""};
  for (const Json& other : document["contestants"]) {
    if (other["ours"].get<bool>()) continue;
    const Json* result = find_result(document, "sequential", row, other["name"]);
    const double value = result == nullptr ? -1 : figure_of(*result, call, "typical", figure);
    if (value >= 0 && (best.first < 0 || value < best.first)) best = {value, other["name"]};
  }
  return best;
}

Json verdict_line(const Json& document, const std::vector<Json>& rows, const std::string& name,
                  const char* call, const char* figure) {
  int sizes = 0, best = 0, printed = 0;
  Json above = Json::array();
  for (const Json& row : rows) {
    const Json* mine = find_result(document, "sequential", row, name);
    if (mine == nullptr) continue;
    ++sizes;
    const double own = figure_of(*mine, call, "typical", figure);
    printed += own <= printed_of(document, call, row["size"], 2) * kEven;
    const auto [other, by] = best_other(document, row, call, figure);
    if (other < 0 || own <= other * kEven) {
      ++best;
    } else {
      above.push_back({{"size", row["size"]}, {"own", own}, {"best", other}, {"by", by}});
    }
  }
  return {{"contestant", name}, {"call", call},       {"figure", figure}, {"sizes", sizes},
          {"best", best},       {"printed", printed}, {"above", above}};
}

}  // namespace

std::string spaces_text(const Json& document, const std::string& times) {
  std::string text = fmt::format(
      "Deterministic spaces beside other allocators; nanoseconds of one call, {}.\n"
      "Windows and RTX64: as printed in \"{}\", on {}.\n",
      times == "typical" ? "without the replays in which something came between"
      : times == "seen"  ? "all replays together"
                         : "the least of all replays",
      document["printed"]["title"].get<std::string>(), document["printed"]["machine"].get<std::string>());
  if (document.value("threads", 1) != 1)
    text += fmt::format("{} threads play each script at a time; these are the calls of one of them.\n",
                        document["threads"].get<unsigned>());
  std::vector<std::string> scenarios;
  for (const Json& one : document["processes"])
    if (std::find(scenarios.begin(), scenarios.end(), one["scenario"]) == scenarios.end())
      scenarios.push_back(one["scenario"]);
  for (const std::string& scenario : scenarios)
    text +=
        scenario == "sequential" ? sequential_text(document, times) : other_text(document, scenario, times);
  if (!document["verdict"].empty()) text += verdict_text(document);
  return text + processes_text(document);
}

Json spaces_verdict(const Json& document) {
  Json verdict = Json::array();
  const std::vector<Json> rows = rows_of(document, "sequential");
  for (const Json& space : document["contestants"]) {
    const std::string name = space["name"];
    if (rows.empty() || name.rfind("space", 0) != 0) continue;
    for (const char* call : kCalls)
      for (const char* figure : {"p50", "p99"})
        verdict.push_back(verdict_line(document, rows, name, call, figure));
  }
  return verdict;
}

void write_spaces_csv(const std::string& path, const Json& document) {
  std::string text = "scenario,size,blocks,contestant,call,times,calls,p50,p99,p999,max,mean\n";
  for (const Json& result : document["results"]) {
    for (const char* call : kCalls) {
      if (result[call].is_null()) continue;
      for (const char* times : {"seen", "typical", "least"}) {
        text +=
            fmt::format("{},{},{},{},{},{},{}", result["scenario"].get<std::string>(), result["size"].dump(),
                        result["blocks"].dump(), result["contestant"].get<std::string>(), call, times,
                        result[call]["calls"].dump());
        for (const char* figure : {"p50", "p99", "p999", "max", "mean"})
          text += "," + result[call][times][figure].dump();
        text += "\n";
      }
    }
  }
  write_text(path, text);
}

}  // namespace hummock::tool
