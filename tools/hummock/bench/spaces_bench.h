// hummock bench spaces: deterministic spaces beside other allocators, each call timed alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/document.h"

namespace CLI {
class App;
}

namespace hummock::tool {

struct BenchSpacesOptions {
  std::vector<std::string> scenarios;  // none: all
  std::vector<std::string> against;    // contestants beside the spaces; none: all that are there
  bool quick = false;
  unsigned rounds = 0;   // processes of each contestant and scenario; 0: what the mode says
  unsigned threads = 1;  // that play a scenario at a time; one of them is measured
  std::uint64_t seed = 1;
  std::string times = "typical";  // which of a call's times the tables show
  std::string json, csv, html;
  std::string worker;   // hummock-bench-spaces
  std::string library;  // libhummock.so
  std::vector<std::string> command;
};

void add_spaces_options(CLI::App* spaces, BenchSpacesOptions& options);

// Who is measured, and how it is set up so that nothing goes back to the system meanwhile.
struct Contestant {
  std::string name, what, version;
  std::string library;  // preloaded; empty: what libc has
  std::string origin;
  std::vector<std::string> settings;  // NAME=VALUE
  std::string space;                  // a kind of space, as the worker names it; empty: malloc
  bool ours = false;
};
struct Contestants {
  std::vector<Contestant> all;
  std::vector<std::string> missing;
};
Contestants find_contestants(const BenchSpacesOptions& options, const std::string& worker);

int bench_spaces(const BenchSpacesOptions& options);

std::vector<std::string> known_scenarios();

// ---- The result as people read it ----------------------------------------------------------------

// The figures that the vendor of the system in question printed, as they stand in `printed` of a result.
Json printed_figures();
std::string spaces_text(const Json& document, const std::string& times);
void write_spaces_csv(const std::string& path, const Json& document);
// {"call", "figure", "contestant", "best": sizes at which nobody of the others is faster, "sizes",
//  "printed": …, "above": [{"size", "own", "best", "by"}]} of every space, from the sequential scenario.
Json spaces_verdict(const Json& document);

}  // namespace hummock::tool
