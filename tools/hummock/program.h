// What kind of program a name stands for, and whether a preloaded library can serve it.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

struct Program {
  std::string path;     // the file that will be executed in the end (an interpreter, for a script)
  bool script = false;  // so the path is that of its interpreter, there or not
  bool folder = false;
  int error = 0;  // 126 not executable, 127 not found
  bool elf = false;
  bool foreign = false;                 // another width or architecture than this tool
  bool is_static = false;               // no dynamic loader: nothing can be preloaded
  bool privileged = false;              // set-uid, set-gid or file capabilities
  bool musl = false;                    // its loader is musl's
  bool holds_hummock = false;           // libhummock.a is linked into it
  std::string loader;                   // the file's PT_INTERP
  std::string sanitizer;                // the sanitizer it was built with, which brings a malloc of its own
  std::string own_malloc;               // in words: why malloc is the program's own; empty when it is not
  std::vector<std::string> allocators;  // allocator libraries it is linked to
};

Program inspect(const std::string& name);

// What is spoken of: the name, with the interpreter of a script.
std::string subject_of(const std::string& name, const Program& program);
// Why preloading cannot work, or an empty text.
std::string obstacle(const Program& program);
// What may be done about an obstacle or a malloc of the program's own; empty: nothing.
std::string advice(const Program& program);
// Asks the program's own loader, without starting the program, whether it takes the library. Empty, or why
// not.
std::string listed(const Program& program, const std::string& preload);
// What may stand in its way, or an empty text.
std::string doubt(const Program& program);

}  // namespace hummock::tool
