// The options of `hummock leaks`: known to the command itself, for its help and completion, and to the
// program that does the work.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hummock::tool {

struct LeaksOptions {
  std::vector<std::string> command;  // a process, or a program and its arguments
  std::vector<std::string> suppressions;
  double after = 0;    // seconds, of a process; 0: Enter ends the watch
  uint64_t bytes = 0;  // of a process: from one sample to the next
  unsigned top = 20;
  unsigned wait_ms = 3000;
  bool fail = false;
  bool reachable = false;
  bool program = false;  // a program stands after --
  std::string library;
};

inline constexpr int kLeaksFound = 23;

void add_leaks_options(CLI::App* command, LeaksOptions* options);
// The command line of the program itself. A status: that is all, help or what is wrong has been printed.
std::optional<int> read_leaks_options(int count, char** arguments, LeaksOptions* options);

// `hummock leaks`: becomes the program beside this one.
class LeaksCommand {
 public:
  explicit LeaksCommand(CLI::App& app);
  bool chosen() const;
  int run(int count, char** arguments);

 private:
  CLI::App* command_;
  LeaksOptions options_;
};

}  // namespace hummock::tool
