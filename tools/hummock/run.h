// hummock run: a program with the library preloaded.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

struct RunOptions {
  bool checked = false;
  bool verbose = false;
  bool stats = false;
  static constexpr const char* kDefaultLog = "malloc_%p.log";
  std::string log;  // the file's name; empty: no log
  static constexpr const char* kDefaultProfile = "-";
  std::string profile;  // the file's name, or that for a table; empty: no profile
  std::string decay_ms;
  std::string conf;
  std::string space_initial;  // empty: no space; else the other space_… say what kind
  std::string space_expand;
  std::string space_reserve;
  bool space_lock = false;
  bool space_huge_pages = false;
  bool space_zero = false;
  std::string library;
  std::vector<std::string> command;
};

inline constexpr int kCannotOverride = 125;
// How a command ends that ran a program and has not what was asked for: as the program, if that failed.
inline int status_without_result(int program) {
  return program != 0 ? program : kCannotOverride;
}
// The variable by which another command says what it runs the program for: "profile" or "recording".
inline constexpr const char* kWatched = "HUMMOCK_RUN_FOR";

// The library beside the tool, or in the place where it was installed; empty when there is none.
std::string find_library();

// Becomes the command. Returns only when that fails: 125…127, with one line that says why.
int run(const RunOptions& options);

}  // namespace hummock::tool
