// hummock replay: the calls of a recorded program on one allocator after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hummock::tool {

struct ReplayOptions {
  std::string file;
  std::vector<std::string>
      with;  // names as hummock bench knows them, glibc, or NAME=LIBRARY; none: all found
  std::string touch = "first";
  std::uint32_t process = 0;  // its number in the system; 0: the one that made most calls
  unsigned repeat = 3;
  std::uint32_t window = 4096;
  double settle = 1;
  double timeout = 600;
  bool list = false;
  std::string json, csv, html;
  std::string worker, library;
  std::vector<std::string> command;
};

int replay(const ReplayOptions& options);

}  // namespace hummock::tool
