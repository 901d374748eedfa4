#include "bench/against.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/stats.h"

namespace hummock::tool {
namespace {

constexpr std::size_t kMostLines = 40;

struct Cost {
  const char* name;
  const char* ratio;
};

constexpr Cost kCosts[] = {{"time", "time_ratio"},
                           {"CPU", "cpu_ratio"},
                           {"peak", "memory_ratio"},
                           {"faults", "fault_ratio"},
                           {"system", "system_ratio"}};
constexpr std::size_t kCount = std::size(kCosts);

struct Line {
  std::string name;
  std::array<double, kCount> ratios = {};  // 0: none
};

Line line_of(const Json& result) {
  Line line;
  const bool alone = result.value("threads", 1u) == 1 && result.value("size", 0.0) == 0;
  line.name = alone ? result["workload"].get<std::string>() : cell_name(result);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto ratio = result.find(kCosts[i].ratio);
    if (ratio == result.end() || !ratio->is_object()) continue;
    const auto value = ratio->find("vs_best");
    if (value != ratio->end() && value->is_number()) line.ratios[i] = value->get<double>();
  }
  return line;
}

Line means_of(const std::vector<Line>& lines) {
  Line means;
  means.name = fmt::format("geometric mean ({})", lines.size());
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<double> known;
    for (const Line& line : lines)
      if (line.ratios[i] > 0) known.push_back(line.ratios[i]);
    means.ratios[i] = geometric_mean(known);
  }
  return means;
}

std::vector<Line> lines_of(const Json& document) {
  const std::string own = document["allocators"][0]["name"];
  std::vector<Line> lines;
  bool has_system = false;
  for (const Json& result : document["results"]) {
    if (result["allocator"] != own) continue;
    lines.push_back(line_of(result));
    has_system |= result.contains("system_seconds") && result["system_seconds"].is_object();
  }
  if (!has_system || lines.size() > kMostLines || document["allocators"].size() < 2) return {};
  lines.push_back(means_of(lines));
  return lines;
}

std::string text_of(double ratio) {
  return ratio > 0 ? fmt::format("{:.2f}", ratio) : "-";
}

std::string title(const Json& document) {
  return fmt::format("{} to the best other of each cell and cost; lower is better",
                     document["allocators"][0]["name"].get<std::string>());
}

}  // namespace

std::string against_best_table(const Json& document) {
  const std::vector<Line> lines = lines_of(document);
  if (lines.empty()) return "";
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.name.size() + 2);
  std::string text = fmt::format("\n{}\n{:{}}", title(document), "", width);
  for (const Cost& cost : kCosts) text += fmt::format("{:>9}", cost.name);
  for (const Line& line : lines) {
    text += fmt::format("\n{:{}}", line.name, width);
    for (const double ratio : line.ratios) text += fmt::format("{:>9}", text_of(ratio));
  }
  return text + "\n";
}

std::string against_best_markdown(const Json& document) {
  const std::vector<Line> lines = lines_of(document);
  if (lines.empty()) return "";
  std::string text = "\n" + title(document) + ":\n\n| cell";
  std::string rule = "\n|---|";
  for (const Cost& cost : kCosts) {
    text += fmt::format(" | {}", cost.name);
    rule += "---|";
  }
  text += " |" + rule + "\n";
  for (const Line& line : lines) {
    text += "| " + line.name;
    for (const double ratio : line.ratios) text += " | " + text_of(ratio);
    text += " |\n";
  }
  return text;
}

}  // namespace hummock::tool
