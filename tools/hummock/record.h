// hummock record: every call of a program to malloc and its kin, in a file for hummock replay.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

struct RecordOptions {
  std::string file = "hummock.trace";
  std::string library;
  std::vector<std::string> command;
};

// The program's exit status, or that of hummock run when it cannot be started.
int record(const RecordOptions& options);

}  // namespace hummock::tool
