// Runs a plan: in rounds over all cells, in each cell every allocator once, in an order drawn anew.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/document.h"
#include "bench/peers.h"
#include "bench/plan.h"

namespace hummock::tool {

struct ScheduleOptions {
  // One run of a cell: what it reports, or {"error": …}.
  std::function<Json(const Cell&, const Allocator&, const OneRun&)> run;
  std::uint64_t seed = 1;
  double timeout = 0;  // of a run; 0: by its length
  double memory = 0;   // resident bytes of a run; 0: most of what is available
  BenchMode mode = BenchMode::kDefault;
};

// The results, one for each cell and allocator, without ratios. Cells for which the time did not last move
// from plan.cells to plan.skipped.
Json measure(Plan& plan, const std::vector<Allocator>& allocators, const ScheduleOptions& options);

}  // namespace hummock::tool
