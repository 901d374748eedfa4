// hummock log: a region log as a timeline and as a picture.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hummock::tool {

class LogCommand {
 public:
  explicit LogCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  // The exit status: 0, or 1 with one line that says what is wrong with the file.
  int run() const;

 private:
  CLI::App* command_;
  std::string file_, page_;
  size_t rows_ = 20;
};

}  // namespace hummock::tool
