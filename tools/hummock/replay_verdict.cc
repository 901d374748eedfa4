#include "replay_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace hummock::tool {
namespace {

// Closer together than this, two are as good as one another, as far as can be told.
constexpr double kAlike = 0.03;

struct Standing {
  std::string name;
  double value, low, high;
};

std::string seconds(double value) {
  return fmt::format("{:.3f} s", value);
}

bool any_disturbed(const Json& results) {
  for (const Json& result : results)
    for (const Json& run : result["runs"])
      if (run.value("disturbed", false)) return true;
  return false;
}

// What the runs took, lowest first: the median of each allocator's, or the least.
std::vector<Standing> ranking(const Json& results, const char* measure, bool least) {
  std::vector<Standing> all;
  for (const Json& result : results) {
    if (!result["error"].is_null()) continue;
    std::vector<double> values;
    for (const Json& run : result["runs"]) values.push_back(run.value(measure, 0.0));
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    all.push_back({result["allocator"], least ? values.front() : values[values.size() / 2], values.front(),
                   values.back()});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  return all;
}

// "jemalloc (1.204 s); as good, within 3 %: tcmalloc"
template <class Text>
std::string best_of(const std::vector<Standing>& ranked, Text text) {
  std::string best = fmt::format("{} ({})", ranked[0].name, text(ranked[0].value));
  std::string alike;
  for (std::size_t i = 1; i < ranked.size() && ranked[i].value <= ranked[0].value * (1 + kAlike); ++i)
    alike += (alike.empty() ? "" : ", ") + ranked[i].name;
  return alike.empty() ? best : best + "; as good, within 3 %: " + alike;
}

std::string place_of(const std::vector<Standing>& ranked, const std::string& name) {
  for (std::size_t i = 0; i < ranked.size(); ++i)
    if (ranked[i].name == name)
      return fmt::format("{} of {} ({:.2f} of the best)", i + 1, ranked.size(),
                         ranked[i].value / ranked[0].value);
  return "";
}

std::string bytes_or_dash(const Json& run, const char* name) {
  const Json value = run.value(name, Json());
  return value.is_number() ? short_bytes(value.get<double>()) : "-";
}

}  // namespace

std::string replay_table(const Json& results) {
  std::string text = fmt::format("{:16} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "time", "cpu", "peak",
                                 "at the end", "spread");
  for (const Json& result : results) {
    const std::string name = result["allocator"];
    if (!result["error"].is_null()) {
      text += fmt::format("{:16} {}\n", name, result["error"].get<std::string>());
      continue;
    }
    const std::vector<Standing> time = ranking(Json::array({result}), "seconds", false);
    const std::vector<Standing> cpu = ranking(Json::array({result}), "cpu_seconds", true);
    const std::vector<Standing> peak = ranking(Json::array({result}), "peak_bytes", false);
    text += fmt::format("{:16} {:>10} {:>10} {:>10} {:>10} {:>9.1f}%\n", name, seconds(time[0].value),
                        seconds(cpu[0].value), short_bytes(peak[0].value),
                        bytes_or_dash(result["runs"][0], "settled_bytes"),
                        100 * (time[0].high - time[0].low) / time[0].value);
  }
  return text;
}

Json replay_verdict(const Json& results) {
  // Beside other work the time that passed is not the allocator's.
  const bool busy = any_disturbed(results);
  const std::vector<Standing> time =
      busy ? ranking(results, "cpu_seconds", true) : ranking(results, "seconds", false);
  const std::vector<Standing> peak = ranking(results, "peak_bytes", false);
  Json lines = Json::array();
  if (time.empty()) return lines;
  lines.push_back((busy ? "best for time (of the processor, as the machine was busy): " : "best for time: ") +
                  best_of(time, seconds));
  lines.push_back("leanest: " + best_of(peak, short_bytes));
  if (const std::string place = place_of(time, "hummock"); !place.empty() && time.size() > 1)
    lines.push_back("Hummock is " + place + " for time, " + place_of(peak, "hummock") + " for memory");
  return lines;
}

}  // namespace hummock::tool
