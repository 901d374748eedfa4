// A short result cell by cell: the first allocator's costs over those of the best other, each cost by itself.
#pragma once

#include <string>

#include "bench/document.h"

namespace hummock::tool {

// Empty where a result has too many cells for that, or no figures of the system's time.
std::string against_best_table(const Json& document);

// The same as Markdown.
std::string against_best_markdown(const Json& document);

}  // namespace hummock::tool
