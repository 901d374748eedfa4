// A result as text: for the terminal and for the README.
#pragma once

#include <string>

#include "bench/document.h"

namespace hummock::tool {

std::string terminal_table(const Json& document, bool colours);

// `by` is what a line stands for: "group" or "workload".
std::string markdown_table(const Json& document, const std::string& by);

}  // namespace hummock::tool
