// Folded stacks, speedscope, and the page.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "outputs.h"
#include "page.h"
#include "report.h"

namespace hummock::tool {
namespace {

using nlohmann::json;

std::string dumped(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Names stand between semicolons, one stack a line.
std::string folded_name(std::string name) {
  for (char& c : name)
    if (c == ';' || c == '\n') c = ':';
  return name;
}

// Each place once, and stacks as lists of their numbers, outermost first.
struct Frames {
  json all = json::array();
  std::unordered_map<std::string, size_t> known;

  size_t number(const Place& place) {
    const std::string key = place.function + "\n" + place.file + "\n" + std::to_string(place.line);
    const auto [at, fresh] = known.try_emplace(key, all.size());
    if (fresh) {
      json frame = {{"name", place.function}};
      if (!place.file.empty()) frame["file"] = place.file;
      if (place.line != 0) frame["line"] = place.line;
      all.push_back(std::move(frame));
    }
    return at->second;
  }
  json numbers(const Stack& stack) {
    json list = json::array();
    for (auto place = stack.places.rbegin(); place != stack.places.rend(); ++place)
      list.push_back(number(*place));
    return list;
  }
};

constexpr struct {
  View view;
  const char* name;
} kViews[] = {{View::live, "live"}, {View::churn, "asked for"}, {View::peak, "peak"}};

}  // namespace

void write_folded(const Report& report, View view, const std::string& path) {
  std::string text;
  for (const Stack& stack : report.stacks) {
    const double bytes = stack.of(view).bytes;
    if (bytes < 0.5) continue;
    std::string line;
    for (auto place = stack.places.rbegin(); place != stack.places.rend(); ++place)
      line += (line.empty() ? "" : ";") + folded_name(place->function);
    text += line + " " + std::to_string(std::llround(bytes)) + "\n";
  }
  write_text(path, text);
}

void write_speedscope(const Report& report, View view, const std::string& path) {
  Frames frames;
  json profiles = json::array();
  size_t active = 0;
  for (const auto& each : kViews) {
    json samples = json::array(), weights = json::array();
    double sum = 0;
    for (const Stack& stack : report.stacks) {
      const double bytes = std::round(stack.of(each.view).bytes);
      if (bytes <= 0) continue;
      samples.push_back(frames.numbers(stack));
      weights.push_back(bytes);
      sum += bytes;
    }
    if (each.view == view) active = profiles.size();
    profiles.push_back({{"type", "sampled"},
                        {"name", each.name},
                        {"unit", "bytes"},
                        {"startValue", 0},
                        {"endValue", sum},
                        {"samples", samples},
                        {"weights", weights}});
  }
  const json document = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                         {"name", report.processes.empty() ? "" : report.processes.front()},
                         {"exporter", "hummock"},
                         {"activeProfileIndex", active},
                         {"shared", {{"frames", frames.all}}},
                         {"profiles", profiles}};
  write_text(path, dumped(document));
}

void write_html(const Report& report, View view, const std::string& path) {
  Frames frames;
  json stacks = json::array();
  for (const Stack& stack : report.stacks) {
    json values = json::array();
    for (const auto& each : kViews) {
      values.push_back(std::round(stack.of(each.view).bytes));
      values.push_back(std::round(stack.of(each.view).blocks));
    }
    for (const double freed : stack.freed) values.push_back(std::round(freed));
    stacks.push_back({frames.numbers(stack), values});
  }
  const json document = {
      {"processes", report.processes}, {"mean", report.mean},
      {"seconds", report.seconds},     {"view", view == View::churn ? 1 : view == View::peak ? 2 : 0},
      {"frames", frames.all},          {"stacks", stacks}};
  std::string data = dumped(document);
  // Inside a script element no text may end it.
  for (size_t at = 0; (at = data.find('<', at)) != std::string::npos; at += 6) data.replace(at, 1, "\\u003c");
  std::string page = kPage;
  const char* mark = "/*DATA*/null";
  page.replace(page.find(mark), strlen(mark), data);
  write_text(path, page);
}

}  // namespace hummock::tool
