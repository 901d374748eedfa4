// Who called: return addresses, for the reports of checked mode.
#ifndef HUMMOCK_TRACE_BACKTRACE_H
#define HUMMOCK_TRACE_BACKTRACE_H

#include <stdint.h>

#include "base/message.h"

namespace hummock::trace {

// At most `most` return addresses, innermost first, without the allocator's own where they can be told from
// the program's. Calls nothing that allocates, takes no lock, and is safe in signal handlers and on any
// stack.
unsigned callers(void** frames, unsigned most);

// One line a frame to standard error: number, module and offset of the call, function where it has a name.
// Only for a process that is about to end: takes its time, but never allocates.
void print_frames(void* const* frames, unsigned count);

// "hummock: <process>: ", with which each line of a report begins.
base::Line report_line();

uint32_t thread_number();
// The child of a fork: its thread has another number.
void forget_thread_number();

}  // namespace hummock::trace

#endif  // HUMMOCK_TRACE_BACKTRACE_H
