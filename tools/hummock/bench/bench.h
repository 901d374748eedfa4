// hummock bench: every workload on every allocator in turn, and what comes out of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/document.h"
#include "bench/marked.h"
#include "bench/spaces_bench.h"

namespace CLI {
class App;
}

namespace hummock::tool {

enum class BenchMode { kQuick, kDefault, kFull };

struct BenchOptions {
  std::vector<std::string> workloads;  // names or groups; none: all
  bool programs = false;               // other people's programs in place of workloads
  std::string program_list;            // which; empty: the list that Hummock brings
  bool quick = false;
  bool full = false;
  std::vector<std::string> against;  // names, "apt", "newest" or NAME=LIBRARY; none: all that are found
  bool newest = false;
  std::vector<unsigned> threads;
  std::vector<std::uint64_t> sizes;
  std::string baseline = "system";
  unsigned repeat = 0;  // 0: what the mode says
  double seconds = 0;   // of one run; 0: what the mode says
  double timeout = 0;   // of one run, in seconds; 0: twenty times its length and 10 s or a minute
  double memory = 0;    // bytes of a run's resident memory; 0: most of what is available
  double budget = 0;    // minutes for all of it; 0: what the mode says
  std::uint64_t seed = 1;
  std::string json, csv, html;
  std::string worker;   // hummock-bench-work
  std::string library;  // libhummock.so
  std::string peers;    // where the newest peers are built
  bool list = false;
  std::vector<std::string> command;  // as it was typed

  BenchMode mode() const { return full ? BenchMode::kFull : quick ? BenchMode::kQuick : BenchMode::kDefault; }
};

struct CompareOptions {
  std::string before, after;
  double gate = 0;  // percent; above 0: exit status 1 when something of Hummock's got worse by more
};

// The subcommand and its own: `compare`, `table` and `spaces`.
class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);
  bool chosen() const;
  int run(int count, char** arguments);

 private:
  CLI::App* bench_;
  CLI::App* compare_;
  CLI::App* table_;
  CLI::App* spaces_;
  CLI::App* usable_;
  BenchOptions options_;
  CompareOptions compare_options_;
  TableOptions table_options_;
  BenchSpacesOptions spaces_options_;
};

int bench(const BenchOptions& options);

// ---- Its parts, for other commands that make such a result -----------------------------------------

struct Peers;

// A run whose allocator is not the one it is called after would be a lie in the table: throws.
void demand_active(const Peers& peers, const std::string& worker);
// What is known before anything is measured.
Json document_of(const BenchOptions& options, const Peers& peers);
// What follows from the results.
void finish_document(Json& document);
void write_outputs(const BenchOptions& options, const Json& document);

}  // namespace hummock::tool
