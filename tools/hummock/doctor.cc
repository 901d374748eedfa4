#include "doctor.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace hummock::tool {
namespace {

void print_text(const std::vector<Finding>& findings, int status) {
  for (const Finding& each : findings) {
    const char* mark = each.level == Level::fine ? "  ok  " : each.level == Level::note ? " note " : "  !!  ";
    std::cout << mark << each.topic << ": " << each.state << "\n";
    if (!each.consequence.empty()) std::cout << "        " << each.consequence << "\n";
    if (!each.fix.empty()) std::cout << "        to change it: " << each.fix << "\n";
    if (!each.hint.empty()) std::cout << "        (" << each.hint << ")\n";
  }
  std::cout << (status == 0 ? "There is nothing to do.\n" : "The lines marked !! say what to do.\n");
}

}  // namespace

DoctorCommand::DoctorCommand(CLI::App& app) {
  command_ =
      app.add_subcommand("doctor", "say what this machine offers a memory allocator, and how to get more");
  command_->add_flag("--json", json_, "print as JSON");
  command_->add_option("--root", root_, "look at the files below this folder instead of /")
      ->check(CLI::ExistingDirectory)
      ->option_text("FOLDER");
}

bool DoctorCommand::chosen() const {
  return command_->parsed();
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
