// hummock bench --programs: other people's programs on inputs that are made on the spot. A list names them
// (bench/programs/programs.json; docs/benchmarks.md says what its fields mean).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/peers.h"
#include "bench/worker.h"

namespace hummock::tool {

using Command = std::vector<std::string>;

struct JudgeProgram {
  std::string name, title, description;
  std::map<std::string, std::string> needs;  // programs, and the packages that have them
  std::vector<Command> make;                 // makes the inputs, once
  std::vector<std::string> environment;      // NAME=VALUE
  Command command;
  std::string input;   // a file for its standard input
  std::string socket;  // of a server, which it listens on
  Command client;      // of a server: its load. Time is the client's, all else the server's.
};

// The programs that are there, each in a folder of its own with its inputs.
class Programs {
 public:
  // Makes no inputs yet. `list` may be empty: the list that Hummock brings. Throws when it is no list.
  explicit Programs(const std::string& list);
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // As the bench knows them; those that cannot run here are not among them.
  const std::vector<Workload>& workloads() const { return workloads_; }
  // What is not there, and what to install.
  const std::vector<std::string>& missing() const { return missing_; }

  // Makes the inputs of these. Throws when that fails.
  void make_inputs(const std::vector<const Workload*>& chosen);

  // What one run reports, as run_once does.
  Json run(const Cell& cell, const Allocator& allocator, const OneRun& options) const;

 private:
  void add(JudgeProgram program, const std::string& group);
  std::string folder_of(const JudgeProgram& program) const { return folder_ + "/" + program.name; }
  const JudgeProgram& program_of(const Workload& workload) const;

  std::string here_;    // the list's folder
  std::string folder_;  // for inputs; removed at the end
  std::vector<JudgeProgram> programs_;
  std::vector<Workload> workloads_;
  std::vector<std::string> missing_;
};

}  // namespace hummock::tool
