// The options of `hummock profile`: known to the command itself, for its help and completion, and to the
// program that does the work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hummock::tool {

enum class View { automatic, live, churn, peak, lifetime };

struct ProfileOptions {
  const char* command_name = "hummock profile";  // in what is said
  std::string process;                           // a number or a name; empty: a program is run
  std::vector<std::string> command;
  std::vector<std::string> diff;
  double seconds = 10;
  uint64_t bytes = 0;  // mean; 0: as the process's options say
  struct {
    bool live = false, churn = false, peak = false, lifetime = false;
  } flags;
  View view = View::automatic;  // as they say
  unsigned top = 20;
  unsigned wait_ms = 3000;
  std::string pprof, folded, speedscope, html;
  std::string library;
  bool quiet = false;    // no table
  bool growth = false;   // of live blocks: those that are there from before do not count
  bool enter = false;    // a line of standard input ends the watch
  bool program = false;  // a program stands after --

  bool writes_for_others() const { return !pprof.empty() || !folded.empty() || !speedscope.empty(); }
};

// Adds them to a command; *options stays.
void add_profile_options(CLI::App* command, ProfileOptions* options);
// The command line of the program itself. A status: that is all, help or what is wrong has been printed.
std::optional<int> read_profile_options(int count, char** arguments, ProfileOptions* options);

// Whether what is named is a program, after --, and no process.
bool names_program(int count, char** arguments);

// Becomes the program of that name beside this one; returns only when that fails.
int become(const std::vector<std::string>& words);

// `hummock profile`: becomes the program beside this one. Returns only when that fails.
class ProfileCommand {
 public:
  explicit ProfileCommand(CLI::App& app);
  bool chosen() const;
  int run(int count, char** arguments);

 private:
  CLI::App* command_;
  ProfileOptions options_;
};

// The same for `hummock run --profile[=FILE] -- program`: the kind of file is told by its ending.
int run_profiled(const std::string& file, const std::string& library,
                 const std::vector<std::string>& command);

}  // namespace hummock::tool
