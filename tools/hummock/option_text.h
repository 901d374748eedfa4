// What the tool says of the library's run-time options, by the table of its own version.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"

namespace hummock::tool {

// Null: there is none of this name; case does not matter.
const options::Option* find_option(const std::string& name);
std::vector<std::string> option_names();

// Why the option cannot have this value, with those that it may have; else empty, and *number is set.
std::string wrong_value(const options::Option& option, const std::string& value, int64_t* number);

}  // namespace hummock::tool
