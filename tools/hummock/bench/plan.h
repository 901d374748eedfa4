// Which cells a mode measures, in order of importance, and how often.
#pragma once

#include <vector>

#include "bench/bench.h"
#include "bench/worker.h"

namespace hummock::tool {

struct Plan {
  std::vector<Cell> cells;
  std::vector<Cell> skipped;  // for want of time
  unsigned repeat = 1;        // runs of each cell, at most
  bool repeat_fixed = false;  // the user said how many
  double budget = 0;          // seconds for all of it; 0: no limit
};

// Throws when a workload or group is unknown.
std::vector<const Workload*> choose_workloads(const std::vector<Workload>& all,
                                              const std::vector<std::string>& names);

Plan plan_bench(const std::vector<const Workload*>& workloads, const BenchOptions& options,
                std::size_t allocators);

}  // namespace hummock::tool
