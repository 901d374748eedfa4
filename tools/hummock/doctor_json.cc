#include <iostream>
#include <nlohmann/json.hpp>

#include "doctor.h"

namespace hummock::tool {
namespace {

const char* name_of(Level level) {
  return level == Level::fine ? "fine" : level == Level::note ? "note" : "finding";
}

}  // namespace

void print_json(const std::vector<Finding>& findings, int status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Finding& each : findings) {
    nlohmann::ordered_json entry = {
        {"topic", each.topic}, {"level", name_of(each.level)}, {"state", each.state}};
    if (!each.consequence.empty()) entry["consequence"] = each.consequence;
    if (!each.fix.empty()) entry["fix"] = each.fix;
    if (!each.hint.empty()) entry["hint"] = each.hint;
    all.push_back(entry);
  }
  std::cout << nlohmann::ordered_json{{"status", status}, {"findings", all}}.dump(
                   2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
            << "\n";
}

}  // namespace hummock::tool
