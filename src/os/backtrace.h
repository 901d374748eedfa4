// Who called: return addresses, for the reports of checked mode.
#ifndef HUMMOCK_OS_BACKTRACE_H
#define HUMMOCK_OS_BACKTRACE_H

#include <stdint.h>

namespace hummock::os {

// At most `most` return addresses, innermost first, without the allocator's own innermost ones.
unsigned callers(void** frames, unsigned most);

// One line a frame to standard error.
void print_frames(void* const* frames, unsigned count);

uint32_t thread_number();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_BACKTRACE_H
