// pprof's format: profile.proto of google/pprof, gzipped. The numbers are its field numbers.
#include <zlib.h>

#include <cmath>
#include <ctime>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>
#include <unordered_map>

#include "processes.h"
#include "report.h"

namespace hummock::tool {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;  // of a file that is read, unpacked

enum Profile : uint32_t {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStrings,
  kTime = 9,
  kDuration,
  kPeriodType,
  kPeriod,
  kComment,
  kDefault
};
enum ValueType : uint32_t { kType = 1, kUnit };
enum Sample : uint32_t { kLocations = 1, kValues, kLabels };
enum Label : uint32_t { kKey = 1, kText };
enum Mapping : uint32_t { kFile = 5, kHasFunctions = 7, kHasFiles, kHasLines, kHasInlined };
enum Location : uint32_t { kItsMapping = 2, kLine = 4 };
enum SourceLine : uint32_t { kItsFunction = 1, kNumber };
enum Function : uint32_t { kName = 2, kSystemName, kItsFile };
constexpr uint32_t kId = 1;

constexpr struct {
  const char* type;
  const char* unit;
  View view;
} kColumns[] = {
    {"inuse_objects", "count", View::live},  {"inuse_space", "bytes", View::live},
    {"alloc_objects", "count", View::churn}, {"alloc_space", "bytes", View::churn},
    {"peak_objects", "count", View::peak},   {"peak_space", "bytes", View::peak},
};

class Strings {
 public:
  Strings() { number(""); }
  int64_t number(const std::string& text) {
    const auto [at, fresh] = known_.try_emplace(text, static_cast<int64_t>(all_.size()));
    if (fresh) all_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, int64_t> known_;
  std::vector<std::string> all_;
};

// Places become locations of one line each, and functions.
class Writer {
 public:
  explicit Writer(const Report& report) : report_(report) {}

  std::string write(View view) {
    for (const auto& column : kColumns) {
      add_type(kSampleType, column.type, column.unit);
      if (column.view == view && std::string(column.unit) == "bytes")
        out_.add_int64(kDefault, strings_.number(column.type));
    }
    for (const Stack& stack : report_.stacks) add_sample(stack);
    protozero::pbf_writer mapping(out_, kMapping);
    mapping.add_uint64(kId, 1);
    mapping.add_int64(kFile, strings_.number(report_.processes.empty() ? "" : report_.processes.front()));
    for (const uint32_t flag : {kHasFunctions, kHasFiles, kHasLines, kHasInlined})
      mapping.add_bool(flag, true);
    mapping.commit();
    out_.add_int64(kTime, static_cast<int64_t>(std::time(nullptr)) * 1000000000);
    out_.add_int64(kDuration, static_cast<int64_t>(report_.seconds * 1e9));
    add_type(kPeriodType, "space", "bytes");
    out_.add_int64(kPeriod, static_cast<int64_t>(report_.mean));
    for (const std::string& process : report_.processes) out_.add_int64(kComment, strings_.number(process));
    for (const std::string& text : strings_.all()) out_.add_string(kStrings, text);
    return std::move(data_);
  }

 private:
  void add_type(uint32_t field, const char* type, const char* unit) {
    protozero::pbf_writer message(out_, field);
    message.add_int64(kType, strings_.number(type));
    message.add_int64(kUnit, strings_.number(unit));
  }

  uint64_t function(const Place& place) {
    const auto [at, fresh] =
        functions_.try_emplace(place.function + "\n" + place.file, functions_.size() + 1);
    if (fresh) {
      protozero::pbf_writer message(out_, kFunction);
      message.add_uint64(kId, at->second);
      message.add_int64(kName, strings_.number(place.function));
      message.add_int64(kSystemName, strings_.number(place.function));
      message.add_int64(kItsFile, strings_.number(place.file));
    }
    return at->second;
  }

  uint64_t location(const Place& place) {
    const std::string key = place.function + "\n" + place.file + "\n" + std::to_string(place.line);
    const auto [at, fresh] = locations_.try_emplace(key, locations_.size() + 1);
    if (fresh) {
      const uint64_t number = function(place);
      protozero::pbf_writer message(out_, kLocation);
      message.add_uint64(kId, at->second);
      message.add_uint64(kItsMapping, 1);
      protozero::pbf_writer line(message, kLine);
      line.add_uint64(kItsFunction, number);
      line.add_int64(kNumber, place.line);
    }
    return at->second;
  }

  void add_sample(const Stack& stack) {
    std::vector<uint64_t> locations;
    std::vector<int64_t> values;
    for (const Place& place : stack.places) locations.push_back(location(place));
    for (const auto& column : kColumns) {
      const Amount& amount = stack.of(column.view);
      values.push_back(std::llround(std::string(column.unit) == "bytes" ? amount.bytes : amount.blocks));
    }
    protozero::pbf_writer message(out_, kSample);
    message.add_packed_uint64(kLocations, locations.begin(), locations.end());
    message.add_packed_int64(kValues, values.begin(), values.end());
    protozero::pbf_writer label(message, kLabels);
    label.add_int64(kKey, strings_.number("process"));
    label.add_int64(kText, strings_.number(stack.process));
  }

  const Report& report_;
  std::string data_;
  protozero::pbf_writer out_{data_};
  Strings strings_;
  std::unordered_map<std::string, uint64_t> functions_, locations_;
};

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using OpenGz = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGz>;

std::string unpacked(const std::string& path) {
  const OpenGz file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) throw std::runtime_error(path + " cannot be read");
  std::string data;
  char part[1 << 16];
  int got;
  while ((got = gzread(file.get(), part, sizeof part)) > 0) {
    data.append(part, static_cast<size_t>(got));
    if (data.size() > kMostBytes) throw std::runtime_error(path + " is too large");
  }
  if (got < 0) throw std::runtime_error(path + " is broken");
  return data;
}

// What refers to something that is not there becomes empty.
class Reader {
 public:
  explicit Reader(const std::string& data) : data_(data) {}

  Report read() {
    protozero::pbf_reader first(data_);
    while (first.next()) {
      switch (first.tag()) {
        case kStrings:
          strings_.push_back(printable(first.get_string()));
          break;
        case kSampleType:
          columns_.push_back(read_pair(first.get_message(), kType));
          break;
        case kFunction:
          read_function(first.get_message());
          break;
        case kLocation:
          read_location(first.get_message());
          break;
        case kPeriod:
          report_.mean = static_cast<uint64_t>(std::max<int64_t>(first.get_int64(), 0));
          break;
        default:
          first.skip();
      }
    }
    protozero::pbf_reader second(data_);
    while (second.next(kSample)) read_sample(second.get_message());
    return std::move(report_);
  }

 private:
  struct Ids {
    uint64_t a = 0, b = 0;
  };

  std::string text(uint64_t number) const { return number < strings_.size() ? strings_[number] : ""; }

  // The fields `from` and `from` + 1.
  static Ids read_pair(protozero::pbf_reader message, uint32_t from) {
    Ids ids;
    while (message.next()) {
      if (message.tag() == from)
        ids.a = message.get_uint64();
      else if (message.tag() == from + 1)
        ids.b = message.get_uint64();
      else
        message.skip();
    }
    return ids;
  }

  void read_function(protozero::pbf_reader message) {
    uint64_t id = 0;
    Ids named;
    while (message.next()) {
      switch (message.tag()) {
        case kId:
          id = message.get_uint64();
          break;
        case kName:
          named.a = message.get_uint64();
          break;
        case kItsFile:
          named.b = message.get_uint64();
          break;
        default:
          message.skip();
      }
    }
    functions_[id] = named;
  }

  void read_location(protozero::pbf_reader message) {
    uint64_t id = 0;
    std::vector<Ids> lines;
    while (message.next()) {
      switch (message.tag()) {
        case kId:
          id = message.get_uint64();
          break;
        case kLine:
          lines.push_back(read_pair(message.get_message(), kItsFunction));
          break;
        default:
          message.skip();
      }
    }
    locations_[id] = lines;
  }

  void add_places(uint64_t location, Stack* stack) const {
    const auto at = locations_.find(location);
    if (at == locations_.end()) return;
    for (const Ids& line : at->second) {
      const auto function = functions_.find(line.a);
      if (function == functions_.end()) continue;
      stack->places.push_back(
          {text(function->second.a), text(function->second.b), static_cast<unsigned>(line.b), false});
    }
  }

  void add_value(size_t column, int64_t value, Stack* stack) const {
    if (column >= columns_.size()) return;
    const std::string type = text(columns_[column].a);
    for (const auto& each : kColumns) {
      if (type != each.type) continue;
      Amount& amount = each.view == View::churn  ? stack->churn
                       : each.view == View::peak ? stack->peak
                                                 : stack->live;
      (std::string(each.unit) == "bytes" ? amount.bytes : amount.blocks) = static_cast<double>(value);
    }
  }

  void read_sample(protozero::pbf_reader message) {
    Stack stack;
    while (message.next()) {
      if (message.tag() == kLocations) {
        for (const uint64_t location : message.get_packed_uint64()) add_places(location, &stack);
      } else if (message.tag() == kValues) {
        size_t column = 0;
        for (const int64_t value : message.get_packed_int64()) add_value(column++, value, &stack);
      } else {
        message.skip();
      }
    }
    if (stack.places.empty()) stack.places.push_back({"(no stack)", "", 0, false});
    report_.stacks.push_back(std::move(stack));
  }

  const std::string& data_;
  Report report_;
  std::vector<std::string> strings_;
  std::vector<Ids> columns_;
  std::unordered_map<uint64_t, Ids> functions_;
  std::unordered_map<uint64_t, std::vector<Ids>> locations_;
};

}  // namespace

void write_pprof(const Report& report, View view, const std::string& path) {
  const std::string data = Writer(report).write(view);
  OpenGz file(gzopen(path.c_str(), "wb"));
  bool fine = file != nullptr;
  if (fine)
    fine =
        gzwrite(file.get(), data.data(), static_cast<unsigned>(data.size())) == static_cast<int>(data.size());
  if (fine) fine = gzclose(file.release()) == Z_OK;
  if (!fine) throw std::runtime_error(path + " cannot be written");
}

Report read_pprof(const std::string& path) {
  const std::string data = unpacked(path);
  try {
    Report report = Reader(data).read();
    if (report.stacks.empty()) throw std::runtime_error(path + " has no samples");
    return report;
  } catch (const protozero::exception&) {
    throw std::runtime_error(path + " is not a profile for pprof");
  }
}

}  // namespace hummock::tool
