#include "bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/against.h"
#include "bench/stats.h"

namespace hummock::tool {
namespace {

// Geometric means over the cells of a workload or a group, for each allocator; 0: not measured.
struct Row {
  std::string name;
  std::size_t cells = 0;
  std::vector<double> time, memory;
  std::vector<bool> failed;
};

std::vector<std::string> names_of(const Json& document) {
  std::vector<std::string> names;
  for (const Json& allocator : document["allocators"]) names.push_back(allocator["name"]);
  return names;
}

struct Ratios {
  std::vector<double> time, memory;
  bool failed = false;
};

// By "workload" or by "group".
std::vector<Row> rows_of(const Json& document, const char* by) {
  const std::vector<std::string> names = names_of(document);
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, Ratios>> table;
  for (const Json& result : document["results"]) {
    const std::string name = result[by];
    if (table.find(name) == table.end()) order.push_back(name);
    Ratios& ratios = table[name][result["allocator"].get<std::string>()];
    const Json& time = result["time_ratio"]["vs_baseline"];
    const Json& memory = result["memory_ratio"]["vs_baseline"];
    if (time.is_number()) ratios.time.push_back(time.get<double>());
    if (memory.is_number()) ratios.memory.push_back(memory.get<double>());
    if (!result["error"].is_null()) ratios.failed = true;
  }
  std::vector<Row> rows;
  for (const std::string& one : order) {
    Row row;
    row.name = one;
    for (const std::string& name : names) {
      const Ratios& ratios = table[one][name];
      row.cells = std::max(row.cells, ratios.time.size());
      row.time.push_back(geometric_mean(ratios.time));
      row.memory.push_back(geometric_mean(ratios.memory));
      row.failed.push_back(ratios.failed);
    }
    rows.push_back(row);
  }
  return rows;
}

std::string number(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

std::string ratio_text(double ratio, bool failed) {
  const std::string text = ratio == 0 ? "" : fmt::format("{:.2f}", ratio);
  return failed ? text + (text.empty() ? "error" : "!") : text.empty() ? "-" : text;
}

double least(const std::vector<double>& values) {
  double best = 0;
  for (const double value : values)
    if (value > 0 && (best == 0 || value < best)) best = value;
  return best;
}

const Json& summary_for(const Json& document, const std::string& name) {
  static const Json none = Json::object();
  for (const Json& one : document["summary"])
    if (one["allocator"] == name) return one;
  return none;
}

struct SummaryLine {
  std::string title;
  const char* section;
  const char* against;  // empty: a plain number
};

const SummaryLine kSummaryLines[] = {
    {"all: time to baseline", "time_ratio_geomean", "vs_baseline"},
    {"all: time to best other", "time_ratio_geomean", "vs_best"},
    {"all: CPU to baseline", "cpu_ratio_geomean", "vs_baseline"},
    {"all: memory to baseline", "memory_ratio_geomean", "vs_baseline"},
    {"all: memory to best other", "memory_ratio_geomean", "vs_best"},
    {"cells: fastest", "wins", ""},
    {"cells: within 2 %", "ties", ""},
    {"cells: another is faster", "losses", ""},
    {"cells: failed", "errors", ""},
};

std::string summary_value(const Json& one, const SummaryLine& line) {
  if (!one.contains(line.section)) return "-";
  return *line.against == 0 ? one[line.section].dump() : number(one[line.section][line.against]);
}

// Where an allocator does worst: the five cells in which another one is farthest ahead.
std::string worst_cells(const Json& document, const std::string& name, const std::string& kind,
                        const char* what) {
  std::vector<const Json*> cells;
  for (const Json& result : document["results"])
    if (result["allocator"] == name && result[kind]["vs_best"].is_number() &&
        result[kind]["vs_best"].get<double>() > 1 + kTie)
      cells.push_back(&result);
  const auto ratio = [&kind](const Json* result) { return (*result)[kind]["vs_best"].get<double>(); };
  std::stable_sort(cells.begin(), cells.end(), [&](auto* a, auto* b) { return ratio(a) > ratio(b); });
  if (cells.empty()) return fmt::format("{} needs no more {} than the best other anywhere.\n", name, what);
  std::string text =
      fmt::format("{} needs more {} than the best other in {} cells; the worst:\n", name, what, cells.size());
  for (std::size_t i = 0; i < cells.size() && i < 5; ++i)
    text += fmt::format("  {:.2f} times as much: {}\n", ratio(cells[i]), cell_name(*cells[i]));
  return text;
}

std::string notes(const Json& document) {
  std::string text;
  std::size_t disturbed = 0;
  for (const Json& result : document["results"]) {
    if (result.value("disturbed", false)) ++disturbed;
    if (result["error"].is_string())
      text += fmt::format("error: {} on {}: {}\n", cell_name(result), result["allocator"].get<std::string>(),
                          result["error"].get<std::string>());
  }
  if (disturbed > 0)
    text += fmt::format("{} of {} results are from runs beside other load on the machine.\n", disturbed,
                        document["results"].size());
  if (const std::size_t skipped = document.value("skipped", Json::array()).size(); skipped > 0)
    text += fmt::format("{} cells were left out for want of time (--budget MINUTES gives more).\n", skipped);
  for (const Json& missing : document.value("missing", Json::array()))
    text += missing.get<std::string>() + "\n";
  return text;
}

std::string padded(const std::string& text, std::size_t width, bool bold) {
  const std::string space(text.size() < width ? width - text.size() : 0, ' ');
  return space + (bold ? "\033[1m" + text + "\033[0m" : text);
}

std::string allocator_list(const Json& document) {
  std::string text;
  for (const Json& allocator : document["allocators"])
    text += (text.empty() ? "" : ", ") + allocator["name"].get<std::string>() + " " +
            allocator["version"].get<std::string>();
  return text;
}

std::string machine_line(const Json& document) {
  const Json& machine = document["machine"];
  return fmt::format("{}, {} cores, {}, {}, {}, huge pages: {}", machine.value("cpu", ""),
                     machine.value("cores", 0), short_bytes(machine.value("memory_bytes", 0.0)),
                     machine.value("distribution", ""), machine.value("kernel", ""),
                     machine.value("thp", ""));
}

}  // namespace

std::string terminal_table(const Json& document, bool colours) {
  const std::vector<std::string> names = names_of(document);
  const std::vector<Row> rows = rows_of(document, "workload");
  std::size_t first = 26;
  for (const Row& row : rows) first = std::max(first, row.name.size() + 5);
  const auto width = [](const std::string& name) { return std::max<std::size_t>(name.size(), 7) + 2; };
  const std::string baseline = document.value("baseline", "");
  std::string text;
  for (const bool time : {true, false}) {
    text += fmt::format("\n{} to {} (1.00), lower is better; geometric mean over a workload's cells\n",
                        time ? "Time for the same work" : "Peak memory", baseline);
    text += std::string(first, ' ');
    for (const std::string& name : names) text += padded(name, width(name), false);
    text += "\n";
    for (const Row& row : rows) {
      text +=
          fmt::format("{:{}}", row.cells > 1 ? fmt::format("{} ({})", row.name, row.cells) : row.name, first);
      const std::vector<double>& values = time ? row.time : row.memory;
      for (std::size_t i = 0; i < names.size(); ++i)
        text += padded(ratio_text(values[i], row.failed[i]), width(names[i]),
                       colours && values[i] > 0 && values[i] == least(values));
      text += "\n";
    }
  }
  text += "\n";
  for (const SummaryLine& line : kSummaryLines) {
    text += fmt::format("{:{}}", line.title, first);
    for (const std::string& name : names)
      text += padded(summary_value(summary_for(document, name), line), width(name), false);
    text += "\n";
  }
  text += against_best_table(document);
  text += "\n" + worst_cells(document, names.front(), "time_ratio", "time") +
          worst_cells(document, names.front(), "memory_ratio", "memory");
  return text + notes(document);
}

std::string markdown_table(const Json& document, const std::string& by) {
  const std::vector<std::string> names = names_of(document);
  const std::vector<Row> rows = rows_of(document, by.c_str());
  std::string text = fmt::format(
      "Time for the same work / peak memory, as a multiple of {}'s. Lower is better; the lowest of a row is "
      "bold. Each row is the geometric mean over its cells (workload × threads × size); the number after the "
      "name is how many.",
      document.value("baseline", ""));
  const auto has_failed = [](const Row& row) {
    return std::find(row.failed.begin(), row.failed.end(), true) != row.failed.end();
  };
  if (std::any_of(rows.begin(), rows.end(), has_failed))
    text += " ! or error: some cells failed and are not in the mean.";
  text += "\n\n| " + by;
  std::string rule = "\n|---|";
  for (const std::string& name : names) {
    text += " | " + name;
    rule += "---|";
  }
  text += " |" + rule + "\n";
  for (const Row& row : rows) {
    text += fmt::format("| {} ({})", row.name, row.cells);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto part = [&](const std::vector<double>& values) {
        const std::string value = ratio_text(values[i], row.failed[i]);
        return values[i] > 0 && values[i] == least(values) ? "**" + value + "**" : value;
      };
      text += " | " + part(row.time) + " / " + part(row.memory);
    }
    text += " |\n";
  }
  for (const SummaryLine& line : kSummaryLines) {
    text += "| " + line.title;
    for (const std::string& name : names) text += " | " + summary_value(summary_for(document, name), line);
    text += " |\n";
  }
  text += against_best_markdown(document);
  text += fmt::format("\nMeasured {} by `hummock bench`, {} mode, on {}. Versions: {}.\n",
                      document.value("date", "").substr(0, 10), document.value("mode", ""),
                      machine_line(document), allocator_list(document));
  const std::string worst = worst_cells(document, names.front(), "time_ratio", "time") +
                            worst_cells(document, names.front(), "memory_ratio", "memory") + notes(document);
  return text + "\n```\n" + worst + "```\n";
}

}  // namespace hummock::tool
