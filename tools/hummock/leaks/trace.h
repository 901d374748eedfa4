// A program that is stopped at its end, while its memory is still there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../leaks_options.h"

namespace hummock::tool {

struct StoppedThread {
  uint64_t stack_pointer;
  std::vector<uint64_t> registers;
};

struct StoppedProcess {
  pid_t pid;
  pid_t thread;  // one that is stopped: its files in /proc tell of the memory
  std::vector<StoppedThread> threads;
};

// Runs the program, with its profile in `memory`, and calls `look` when it is about to end. The exit status
// is returned. Not called: it could not be stopped, and a line on standard error says why.
int run_until_end(const LeaksOptions& options, int memory,
                  const std::function<void(const StoppedProcess&)>& look);

}  // namespace hummock::tool
