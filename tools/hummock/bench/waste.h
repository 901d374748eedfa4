// How many bytes a request of each size really gets, on each allocator.
#pragma once

#include <vector>

#include "bench/document.h"
#include "bench/peers.h"

namespace hummock::tool {

// Runs this program again, with the allocator preloaded, for the part below.
Json measure_waste(const std::vector<Allocator>& allocators);

// Prints "SIZE USABLE" lines; what `hummock bench usable` does.
int print_usable();

}  // namespace hummock::tool
