// hummock spaces: the deterministic spaces of a running process, read from outside.
#pragma once

#include <string>

namespace hummock::tool {

struct SpacesOptions {
  std::string which;  // a process: its number, its program's name or a control group
  std::string sort = "size";
  bool json = false;
  bool map = false;
  double every = 0;  // seconds between two looks; 0: one look
};

inline constexpr const char* kSpaceColumns[] = {"name",    "size",   "used",  "free", "peak",
                                                "largest", "ranges", "cache", "live", "failures"};

// 0, or 1 with a line that says why there is nothing to show.
int spaces(const SpacesOptions& options);

}  // namespace hummock::tool
