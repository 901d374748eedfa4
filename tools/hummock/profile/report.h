// A profile with names: what is printed and written to files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "names.h"
#include "profile_options.h"
#include "read.h"

namespace hummock::tool {

// A stack by names. Stacks that differ only in what has no name of its own are one.
struct Stack {
  std::vector<Place> places;  // innermost first
  Amount live, churn, peak;
  Ages freed = {};
  uint64_t samples = 0;  // so far
  uint64_t live_samples = 0;
  std::string process;  // "program (123)"

  // Of what was freed only bytes are known.
  Amount of(View view) const;
};

struct Report {
  std::vector<Stack> stacks;
  std::vector<std::string> processes;
  uint64_t mean = 0;
  uint64_t samples_dropped = 0, stacks_dropped = 0;
  double seconds = 0;   // how long was looked; 0: from the start
  bool titled = false;  // the process's title says what its bytes are, as "lost"

  Amount total(View view) const;
};

// Adds a process. `root` as for Names, `process` its title.
void add_profile(Report* report, const RawProfile& profile, const std::string& root,
                 const std::string& process);

// Within how long so great a share of them was freed, as "< 10 ms".
std::string age_text(const Ages& freed, double share);

// The table for a terminal of so many columns, in plain words; at most `top` stacks, all for 0.
std::string table(const Report& report, View view, unsigned top, unsigned columns);

// ---- Files. Each throws std::runtime_error when it cannot be written. -----------------------------

void write_folded(const Report& report, View view, const std::string& path);
void write_speedscope(const Report& report, View view, const std::string& path);
void write_html(const Report& report, View view, const std::string& path);
void write_pprof(const Report& report, View view, const std::string& path);
// Reads what write_pprof wrote; throws what is wrong with it.
Report read_pprof(const std::string& path);

// What has become more and what less, stack by stack.
std::string difference(const Report& before, const Report& after, View view, unsigned top, unsigned columns);

}  // namespace hummock::tool
