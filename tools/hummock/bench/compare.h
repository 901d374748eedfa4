// What changed between two results.
#pragma once

#include <string>

#include "bench/bench.h"
#include "bench/document.h"

namespace hummock::tool {

// The comparison as text; `worse` is by how much (0.1: ten percent) Hummock's worst change is worse.
std::string comparison(const Json& before, const Json& after, double& worse);
int compare_results(const CompareOptions& options);

}  // namespace hummock::tool
