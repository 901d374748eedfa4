// The memory of a process and of all that it started and that is still there.
#pragma once

#include <sys/types.h>

#include <string>

namespace hummock::tool {

// Resident bytes, summed. Pages that several of them share count for each.
double tree_resident(pid_t root);

// Has one of them the library of that file name in its memory?
bool tree_has_library(pid_t root, const std::string& file_name);

}  // namespace hummock::tool
