// What kind of program a name stands for, and whether a preloaded library can serve it.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

struct Program {
  std::string path;  // the file that will be executed in the end (an interpreter, for a script)
  int error = 0;     // 126 not executable, 127 not found
  bool elf = false;
  bool foreign = false;                 // another width or architecture than this tool
  bool is_static = false;               // no dynamic loader: nothing can be preloaded
  bool privileged = false;              // set-uid, set-gid or file capabilities
  bool own_malloc = false;              // defines malloc itself
  std::vector<std::string> allocators;  // allocator libraries it is linked to
};

Program inspect(const std::string& name);

// Why preloading cannot work, or an empty text.
std::string obstacle(const Program& program);
// What may stand in its way, or an empty text.
std::string doubt(const Program& program);

}  // namespace hummock::tool
