// hummock run: its options, and what is wrong with them.
#pragma once

#include <CLI/CLI.hpp>

#include "run.h"

namespace hummock::tool {

class RunCommand {
 public:
  explicit RunCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  // Becomes the program; a status: that failed.
  int run() const;

 private:
  CLI::App* command_;
  RunOptions options_;
};

}  // namespace hummock::tool
