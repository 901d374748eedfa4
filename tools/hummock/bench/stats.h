// Numbers out of numbers: medians and spreads, ratios, geometric means.
#pragma once

#include <vector>

#include "bench/document.h"

namespace hummock::tool {

struct Spread {
  double median = 0, low = 0, high = 0;
};

Spread spread_of(std::vector<double> values);  // of at least one
double geometric_mean(const std::vector<double>& values);

// Below this a run stands beside another's work: it is then a tie.
inline constexpr double kTie = 0.02;

// Sets median, low and high of every measure of a result from its runs, and its other measures.
void sum_up_runs(Json& result);
// Sets time_ratio, cpu_ratio and memory_ratio of every result, to the baseline and to the best other one.
void set_ratios(Json& document);
// What each allocator's results come to.
Json summary_of(const Json& document);

}  // namespace hummock::tool
