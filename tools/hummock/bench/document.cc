#include "bench/document.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/shape.h"
#include "outputs.h"

namespace hummock::tool {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_value(const Json& value) {
  return value.is_null() ? "" : value.is_string() ? csv_field(value.get<std::string>()) : value.dump();
}

// Results of earlier versions do not have every measure.
std::string spread_part(const Json& result, const std::string& measure, const char* part) {
  const auto spread = result.find(measure);
  return spread == result.end() || spread->is_null() ? "" : csv_value(spread->at(part));
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) throw std::runtime_error(path + " cannot be read");
  return text.str();
}

Json read_document(const std::string& path) {
  Json document;
  try {
    document = Json::parse(read_text(path));
  } catch (const Json::parse_error& error) {
    throw std::runtime_error(path + " is not JSON, from its byte " + std::to_string(error.byte) + " on");
  } catch (const Json::exception&) {
    throw std::runtime_error(path + " has a number that is too large");
  }
  if (!document.is_object() || !document.contains("results") || !document["results"].is_array())
    throw std::runtime_error(path + " is not a result of hummock bench");
  // Whatever it is, and in one line, however it is written.
  const auto text_of = [&](const char* name) {
    const Json value = document.value(name, Json());
    return value.is_primitive() ? value.dump(-1, ' ', true, Json::error_handler_t::replace) : "a structure";
  };
  if (document.value("format", Json()) != kFormat)
    throw std::runtime_error(
        fmt::format("{} has format {}; this program reads format {}", path, text_of("format"), kFormat));
  if (document.value("program", Json()) == "hummock bench spaces")
    throw std::runtime_error(path + " is a result of hummock bench spaces");
  if (const std::string fault = misshapen(document); !fault.empty())
    throw std::runtime_error(path + " is not a result of hummock bench: " + fault);
  return document;
}

// A line for each part, and in lists for each entry: stored results stay small and can be compared by lines.
void write_json(const std::string& path, const Json& document) {
  const auto dump = [](const Json& part) {
    return part.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = "{\n";
  for (const auto& [name, part] : document.items()) {
    text += (text.size() > 2 ? ",\n" : "") + dump(name) + ": ";
    if (!part.is_array() || part.empty() || !part[0].is_object()) {
      text += dump(part);
      continue;
    }
    for (std::size_t i = 0; i < part.size(); ++i) text += (i == 0 ? "[\n " : ",\n ") + dump(part[i]);
    text += "\n]";
  }
  write_text(path, text + "\n}\n");
}

void write_csv(const std::string& path, const Json& document) {
  std::string text = "workload,group,unit,threads,size,allocator";
  const std::vector<std::string> measures = {"ops_per_second", "cpu_ns_per_operation", "cpu_seconds",
                                             "peak_bytes",     "settled_bytes",        "minor_faults",
                                             "system_seconds"};
  for (const std::string& measure : measures)
    for (const char* part : {"median", "low", "high"}) text += "," + measure + "_" + part;
  text += ",time_vs_baseline,time_vs_best,memory_vs_baseline,memory_vs_best,runs,disturbed,error\n";
  for (const Json& result : document["results"]) {
    std::string line;
    for (const char* name : {"workload", "group", "unit", "threads", "size", "allocator"})
      line += csv_value(result[name]) + ",";
    for (const std::string& measure : measures)
      for (const char* part : {"median", "low", "high"}) line += spread_part(result, measure, part) + ",";
    for (const char* name : {"time_ratio", "memory_ratio"})
      for (const char* against : {"vs_baseline", "vs_best"}) line += csv_value(result[name][against]) + ",";
    line += std::to_string(result["runs"].size()) + "," + csv_value(result["disturbed"]) + "," +
            csv_value(result["error"]);
    text += line + "\n";
  }
  write_text(path, text);
}

void write_html(const std::string& path, const Json& document) {
  const std::string place =
      find_file("bench-report.html", "bench-report.html", "bench/report/bench-report.html");
  if (place.empty()) throw std::runtime_error("there is no report page: Hummock was built without Python");
  std::string text = read_text(place);
  const std::string mark = "{{DATA}}";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw std::runtime_error(place + " has no " + mark);
  write_text(path, text.replace(at, mark.size(), script_data(document)));
}

std::string script_data(const Json& document) {
  std::string data;
  for (const char c : document.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    // "</script>" would end the element, "<!--<script>" would keep it from ending. In JSON a '<' stands in
    // texts alone.
    if (c == '<')
      data += "\\u003c";
    else
      data += c;
  }
  return data;
}

std::string find_file(const std::string& in_build, const std::string& installed,
                      const std::string& in_source) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place :
       {here / in_build, here / HUMMOCK_DATA_FROM_BIN / installed, fs::path(HUMMOCK_SOURCE_DIR) / in_source})
    if (fs::exists(place, error)) return fs::canonical(place, error).string();
  return "";
}

std::string short_bytes(double bytes) {
  const char* unit = "";
  for (const char* next : {"K", "M", "G", "T"}) {
    if (std::abs(bytes) < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return bytes == std::floor(bytes) || bytes >= 100 ? fmt::format("{:.0f}{}", bytes, unit)
                                                    : fmt::format("{:.1f}{}", bytes, unit);
}

std::string cell_name(const Json& cell) {
  std::string name = cell.value("workload", "");
  const unsigned threads = cell.value("threads", 1u);
  name += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
  const double size = cell.value("size", 0.0);
  return size == 0 ? name : name + ", " + short_bytes(size);
}

}  // namespace hummock::tool
