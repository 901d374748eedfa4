#include "bench/programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/process.h"
#include "bench/program_run.h"

namespace hummock::tool {
namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 1.5;    // of a run, about
constexpr double kMakeLimit = 120;  // seconds for one command that makes inputs

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// Where the package has it rather than where PATH leads: a script that chooses a version is no program.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = getenv("PATH");
  std::istringstream folders("/usr/bin:/usr/sbin:" + std::string(path == nullptr ? "" : path));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    std::string place = fmt::format("{}/{}", folder, name);
    if (access(place.c_str(), X_OK) == 0) return place;
  }
  return "";
}

// With "{here}" replaced, and the program's place in front.
Command completed(Command command, const std::string& here) {
  for (std::string& part : command) replace_all(part, "{here}", here);
  if (const std::string place = find_program(command.front()); !place.empty()) command.front() = place;
  return command;
}

Command command_of(const Json& entry, const char* name) {
  Command command = entry.value(name, Command());
  if (entry.contains(name) && command.empty()) throw std::runtime_error(fmt::format("\"{}\" is empty", name));
  return command;
}

bool is_name(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_.";
  return !name.empty() && name[0] != '.' && name[0] != '-' &&
         name.find_first_not_of(kLetters) == std::string::npos;
}

JudgeProgram program_of_entry(const Json& entry) {
  JudgeProgram program;
  program.name = entry.at("name");
  if (!is_name(program.name)) throw std::runtime_error("\"" + program.name + "\" is not a name");
  program.title = entry.value("title", program.name);
  program.description = entry.value("description", "");
  program.needs = entry.value("needs", program.needs);
  program.make = entry.value("make", program.make);
  for (const Command& command : program.make)
    if (command.empty()) throw std::runtime_error("\"make\" has an empty command");
  for (const auto& [name, value] : entry.value("environment", std::map<std::string, std::string>()))
    program.environment.push_back(fmt::format("{}={}", name, value));
  program.command = command_of(entry, "command");
  program.client = command_of(entry, "client");
  program.input = entry.value("input", "");
  program.socket = entry.value("socket", "");
  if (program.command.empty()) throw std::runtime_error(program.name + " has no \"command\"");
  if (program.client.empty() != program.socket.empty())
    throw std::runtime_error(program.name + ": a server has both \"socket\" and \"client\"");
  return program;
}

Workload workload_of(const JudgeProgram& program, const std::string& group) {
  Workload workload;
  workload.name = program.name;
  workload.group = group;
  workload.title = program.title;
  workload.description = program.description;
  workload.unit = "run";
  workload.whole = {true, {1}, {0}, kSeconds, 1, 0};
  std::fill(std::begin(workload.sets), std::end(workload.sets), workload.whole);
  return workload;
}

std::string made_folder() {
  const char* base = getenv("TMPDIR");
  std::string folder =
      std::string(base == nullptr || *base == 0 ? "/tmp" : base) + "/hummock-programs-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
  return folder;
}

}  // namespace

Programs::Programs(const std::string& list) {
  const std::string path = list.empty() ? find_file("programs/programs.json", "programs/programs.json",
                                                    "bench/programs/programs.json")
                                        : list;
  if (path.empty()) throw std::runtime_error("the list of programs was not found");
  here_ = fs::absolute(path).parent_path().string();
  try {
    const Json document = Json::parse(read_text(path));
    const std::string group = document.value("group", "programs");
    for (const Json& entry : document.at("programs")) add(program_of_entry(entry), group);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception...] " and words
    throw std::runtime_error(path + " is not a list of programs: " + what.substr(what.find("] ") + 2));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

Programs::~Programs() {
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(folder_, error);
}

void Programs::add(JudgeProgram program, const std::string& group) {
  const auto same = [&](const JudgeProgram& other) { return other.name == program.name; };
  if (std::any_of(programs_.begin(), programs_.end(), same))
    throw std::runtime_error(program.name + " is listed twice");
  std::string packages, absent;
  for (const auto& [needed, package] : program.needs) {
    if (!find_program(needed).empty()) continue;
    absent += (absent.empty() ? "" : ", ") + needed;
    packages += " " + package;
  }
  if (!absent.empty()) {
    missing_.push_back(fmt::format("{} is left out, {} is not installed: apt-get install{}", program.name,
                                   absent, packages));
    return;
  }
  for (Command& command : program.make) command = completed(command, here_);
  program.command = completed(program.command, here_);
  if (!program.client.empty()) program.client = completed(program.client, here_);
  workloads_.push_back(workload_of(program, group));
  programs_.push_back(std::move(program));
}

const JudgeProgram& Programs::program_of(const Workload& workload) const {
  return *std::find_if(programs_.begin(), programs_.end(),
                       [&](const JudgeProgram& one) { return one.name == workload.name; });
}

void Programs::make_inputs(const std::vector<const Workload*>& chosen) {
  if (folder_.empty()) folder_ = made_folder();
  for (const Workload* workload : chosen) {
    const JudgeProgram& program = program_of(*workload);
    const std::string folder = folder_of(program);
    fs::create_directories(folder);
    for (const Command& command : program.make) {
      Command all = {"env", "-C", folder};
      all.insert(all.end(), command.begin(), command.end());
      const Outcome outcome = execute(all, program_environment(program, nullptr, folder), kMakeLimit);
      if (interrupted()) return;
      if (const std::string error = what_failed(outcome, kMakeLimit); !error.empty())
        throw std::runtime_error(fmt::format("the inputs of {} were not made: {}", program.name, error));
    }
  }
}

Json Programs::run(const Cell& cell, const Allocator& allocator, const OneRun& options) const {
  const JudgeProgram& program = program_of(*cell.workload);
  return run_program(program, allocator, folder_of(program), options);
}

}  // namespace hummock::tool
