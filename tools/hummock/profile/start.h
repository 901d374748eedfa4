// Starts a program whose profile stands in memory of the tool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hummock::tool {

// A memfd for the profiles of the program and all that it starts; -1 and errno. Its length cannot change, so
// nobody can end the program by cutting it.
int make_profile_memory();

// Becomes `hummock run`, which says what stands in the program's way, with the memory open. `mean` 0: as the
// program's options say; empty `library`: the usual one.
[[noreturn]] void become_profiled(int memory, uint64_t mean, const std::string& library,
                                  const std::vector<std::string>& command);

}  // namespace hummock::tool
