// Has a document that was read the parts that the tool uses, each of its type?
#pragma once

#include <string>

#include "bench/document.h"

namespace hummock::tool {

// The first thing that is not as bench/schema.json says, "results[3].threads is not a number"; empty: none.
std::string misshapen(const Json& document);

}  // namespace hummock::tool
