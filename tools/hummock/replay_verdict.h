// What a replay comes to.
#pragma once

#include "bench/document.h"

namespace hummock::tool {

// A line for each allocator.
std::string replay_table(const Json& results);
// In words: the best for time, the leanest, and where Hummock is.
Json replay_verdict(const Json& results);

}  // namespace hummock::tool
