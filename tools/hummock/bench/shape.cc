#include "bench/shape.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace hummock::tool {
namespace {

enum class Is { text, number, flag, list, text_or_null, number_or_null };

struct Part {
  const char* name;
  Is is;
  bool may_miss = false;
};

bool has_type(const Json& value, Is is) {
  switch (is) {
    case Is::text:
      return value.is_string();
    case Is::number:
      return value.is_number();
    case Is::flag:
      return value.is_boolean();
    case Is::list:
      return value.is_array();
    case Is::text_or_null:
      return value.is_string() || value.is_null();
    case Is::number_or_null:
      return value.is_number() || value.is_null();
  }
  return false;
}

const char* noun(Is is) {
  constexpr const char* kNouns[] = {"a text", "a number", "true or false", "a list", "a text", "a number"};
  return kNouns[static_cast<int>(is)];
}

// Holds the first fault that is found; what is checked after it does not count.
class Check {
 public:
  std::string fault;

  void parts(const Json& object, const std::string& place, std::initializer_list<Part> parts) {
    if (!fault.empty()) return;
    if (!object.is_object()) return found(place + " is not an object");
    const std::string before = place.empty() ? "" : place + ".";
    for (const Part& part : parts) {
      const auto value = object.find(part.name);
      if (value == object.end() && part.may_miss) continue;
      if (value == object.end()) return found(before + part.name + " is missing");
      if (!has_type(*value, part.is)) return found(before + part.name + " is not " + noun(part.is));
    }
  }

  // An object in `object`.
  void inner(const Json& object, const char* name, const std::string& place,
             std::initializer_list<Part> parts_of) {
    if (!fault.empty()) return;
    const std::string here = place.empty() ? name : place + "." + name;
    const auto value = object.find(name);
    if (value == object.end()) return found(here + " is missing");
    parts(*value, here, parts_of);
  }

  template <class Each>
  void list(const Json& document, const char* name, Each each) {
    if (!fault.empty()) return;
    std::size_t index = 0;
    for (const Json& one : document[name]) each(one, std::string(name) + "[" + std::to_string(index++) + "]");
  }

  void found(const std::string& what) {
    if (fault.empty()) fault = what;
  }
};

constexpr const char* kShapeMeasures[] = {"ops_per_second", "cpu_ns_per_operation", "cpu_seconds",
                                          "peak_bytes",     "settled_bytes",        "minor_faults",
                                          "system_seconds"};

void check_ratio(Check& check, const Json& object, const char* name, const std::string& place) {
  check.inner(object, name, place, {{"vs_baseline", Is::number_or_null}, {"vs_best", Is::number_or_null}});
}

void check_result(Check& check, const Json& result, const std::string& place) {
  check.parts(result, place,
              {{"workload", Is::text},
               {"group", Is::text},
               {"unit", Is::text},
               {"threads", Is::number},
               {"size", Is::number},
               {"allocator", Is::text},
               {"runs", Is::list},
               {"disturbed", Is::flag},
               {"error", Is::text_or_null}});
  for (const char* measure : kShapeMeasures) {
    if (!check.fault.empty()) return;
    const bool may_miss = std::string_view(measure) == "system_seconds";
    if (may_miss && !result.contains(measure)) continue;
    if (!result.contains(measure)) return check.found(place + "." + measure + " is missing");
    if (result[measure].is_null()) continue;
    check.inner(result, measure, place, {{"median", Is::number}, {"low", Is::number}, {"high", Is::number}});
  }
  check_ratio(check, result, "time_ratio", place);
  check_ratio(check, result, "memory_ratio", place);
}

void check_summary(Check& check, const Json& one, const std::string& place) {
  check.parts(one, place,
              {{"allocator", Is::text},
               {"wins", Is::number, true},
               {"ties", Is::number, true},
               {"losses", Is::number, true},
               {"errors", Is::number, true}});
  for (const char* name : {"time_ratio_geomean", "cpu_ratio_geomean", "memory_ratio_geomean"})
    if (check.fault.empty() && one.contains(name)) check_ratio(check, one, name, place);
}

}  // namespace

std::string misshapen(const Json& document) {
  Check check;
  check.parts(document, "",
              {{"date", Is::text, true},
               {"mode", Is::text, true},
               {"baseline", Is::text, true},
               {"allocators", Is::list},
               {"results", Is::list},
               {"summary", Is::list},
               {"skipped", Is::list, true},
               {"missing", Is::list, true}});
  check.inner(document, "machine", "",
              {{"cpu", Is::text, true},
               {"cores", Is::number, true},
               {"memory_bytes", Is::number, true},
               {"distribution", Is::text, true},
               {"kernel", Is::text, true},
               {"thp", Is::text, true}});
  check.list(document, "allocators", [&](const Json& one, const std::string& place) {
    check.parts(one, place, {{"name", Is::text}, {"version", Is::text}});
  });
  if (check.fault.empty() && document["allocators"].empty()) check.found("allocators is empty");
  check.list(document, "results",
             [&](const Json& one, const std::string& place) { check_result(check, one, place); });
  check.list(document, "summary",
             [&](const Json& one, const std::string& place) { check_summary(check, one, place); });
  if (check.fault.empty() && document.contains("missing")) {
    check.list(document, "missing", [&](const Json& one, const std::string& place) {
      if (!one.is_string()) check.found(place + " is not a text");
    });
  }
  return check.fault;
}

}  // namespace hummock::tool
