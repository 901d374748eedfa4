// Functions, files and lines of return addresses, by elfutils.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "read.h"

namespace hummock::tool {

struct Place {
  std::string function;  // demangled; never empty
  std::string file;      // empty: not known
  unsigned line = 0;
  bool of_allocator = false;

  bool operator==(const Place& other) const {
    return function == other.function && file == other.file && line == other.line;
  }
};

class Names {
 public:
  // `root`: where the process's files are, "/proc/123/root"; they are taken from here where that is gone.
  Names(const RawProfile& profile, const std::string& root);
  ~Names();

  // What stands at a return address: one place, and before it those that were inlined there, innermost first.
  const std::vector<Place>& find(uint64_t address);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hummock::tool
