// hummock check: will a program run on Hummock, does a process.
#pragma once

#include <string>

namespace hummock::tool {

// Of a program's name or a process's number. Prints one line, and a second with what to do when it is no.
// Returns 0 for yes, 1 for no.
int check(const std::string& name);

}  // namespace hummock::tool
