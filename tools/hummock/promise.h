// What a run asks of Hummock and cannot have.
#pragma once

#include <string>

#include "program.h"

namespace hummock::tool {

// By the environment that the program gets. `watched`: "profile" or "recording" if it is for one of these,
// else empty. Empty: all can be had.
std::string broken_promise(const Program& program, const std::string& watched);

}  // namespace hummock::tool
