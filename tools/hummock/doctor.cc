#include "doctor.h"

#include <iostream>
#include <nlohmann/json.hpp>

namespace hummock::tool {
namespace {

const char* name_of(Level level) {
  return level == Level::fine ? "fine" : level == Level::note ? "note" : "finding";
}

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
  std::cout << nlohmann::ordered_json{{"status", status}, {"findings", all}}.dump(2) << "\n";
}

void print_text(const std::vector<Finding>& findings, int status) {
  for (const Finding& each : findings) {
    const char* mark = each.level == Level::fine ? "  ok  " : each.level == Level::note ? " note " : "  !!  ";
    std::cout << mark << each.topic << ": " << each.state << "\n";
    if (!each.consequence.empty()) std::cout << "        " << each.consequence << "\n";
    if (!each.fix.empty()) std::cout << "        to change it: " << each.fix << "\n";
    if (!each.hint.empty()) std::cout << "        (" << each.hint << ")\n";
  }
  std::cout << (status == 0 ? "Nothing is to be done.\n" : "The lines marked !! say what is to be done.\n");
}

}  // namespace

DoctorCommand::DoctorCommand(CLI::App& app) {
  command_ =
      app.add_subcommand("doctor", "say what this machine gives to a memory allocator, and how to get more");
  command_->add_flag("--json", json_, "print as JSON");
  command_->add_option("--root", root_, "look at the files below this folder instead of /")
      ->check(CLI::ExistingDirectory);
}

int DoctorCommand::run() const {
  const std::vector<Finding> findings = examine(Facts(root_));
  if (findings.empty()) {
    std::cerr << "hummock doctor: there is no proc folder in " << root_ << "\n";
    return 2;
  }
  int status = 0;
  for (const Finding& each : findings) {
    if (each.level == Level::finding) status = 1;
  }
  json_ ? print_json(findings, status) : print_text(findings, status);
  return status;
}

}  // namespace hummock::tool
