#include "os/backtrace.h"

#include <execinfo.h>
#include <unistd.h>

namespace hummock::os {
namespace {

constexpr unsigned kMost = 24;
constexpr unsigned kOwn = 3;  // callers() and two layers of checked mode

// The unwinder allocates: what it asks for gets no stack of its own.
__thread bool in_unwinder __attribute__((tls_model("initial-exec")));

}  // namespace

unsigned callers(void** frames, unsigned most) {
  if (most == 0 || in_unwinder) return 0;
  in_unwinder = true;
  void* all[kMost];
  const unsigned wish = most + kOwn < kMost ? most + kOwn : kMost;
  const unsigned count = static_cast<unsigned>(backtrace(all, static_cast<int>(wish)));
  unsigned kept = 0;
  for (unsigned i = kOwn; i < count && kept < most; ++i) frames[kept++] = all[i];
  in_unwinder = false;
  return kept;
}

void print_frames(void* const* frames, unsigned count) {
  backtrace_symbols_fd(frames, static_cast<int>(count), STDERR_FILENO);
}

uint32_t thread_number() {
  return static_cast<uint32_t>(gettid());
}

}  // namespace hummock::os
