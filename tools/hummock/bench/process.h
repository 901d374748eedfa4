// A child process with its output caught, a time limit, and what else the machine did meanwhile.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace hummock::tool {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A run counts as disturbed when the hypervisor kept more than this part of its time.
inline constexpr double kStealPart = 0.02;

struct Outcome {
  int status = 0;          // as a shell gives it: 128 + signal when it was killed
  bool timed_out = false;  // and was killed, with all that it had started
  bool too_large = false;  // the same, for want of memory
  std::string out, err;
  double seconds = 0;        // from start to end
  double cpu_seconds = 0;    // its own and its ended children's
  double other_seconds = 0;  // processor time that others took in the meantime; negative: unknown
  double steal_seconds = 0;  // processor time that the hypervisor gave to others
};

// `environment` holds NAME=VALUE, or NAME to remove it. A process that has more than `memory` bytes resident
// is ended; 0: most of what is available when it begins.
Outcome execute(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                double timeout, double memory = 0);

// Of all processors since the machine began, in seconds; negative: unknown.
struct MachineTime {
  double busy = -1, steal = 0;
};
MachineTime machine_time();
// What others took since then, beside the process's own.
void set_others(Outcome& outcome, const MachineTime& before);

// Most of what is available now, in bytes; 0: unknown.
double available_memory();

// For a child: becomes that program. `environment` as for execute.
[[noreturn]] void replace_process(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment);

// Its output goes where ours goes. Its exit status, or 128 + signal.
int run_openly(const std::vector<std::string>& arguments);

// Its first line of output, or an empty text.
std::string output_of(const std::vector<std::string>& arguments);

// Set by SIGINT or SIGTERM once catch_interrupt was called: the run under way is ended, and no other begins.
bool interrupted();
void catch_interrupt();

}  // namespace hummock::tool
