// Each stack is kept once, for ever: programs allocate millions of blocks from thousands of places.
#ifndef HUMMOCK_MODES_STACKS_H
#define HUMMOCK_MODES_STACKS_H

#include <stdint.h>

namespace hummock::modes {

inline constexpr unsigned kMostFrames = 16;

// Half as large as a pointer, because each block of checked mode has two. 0: none.
using StackNumber = uint32_t;

// A block's allocation, or its free.
struct Event {
  StackNumber stack;
  uint32_t thread;
};

// The calling thread's stack of at most `most` frames; 0: none was asked for, or no more are kept.
// Takes no lock unless the stack is new.
StackNumber current_stack(unsigned most);

// Prints lines of a report to standard error: "what by thread 12:" and the stack, if there is one.
void say_event(const char* what, Event event);
// The last lines of a report: "this call", and what led to it. The process ends.
[[noreturn]] void end_report();

}  // namespace hummock::modes

#endif  // HUMMOCK_MODES_STACKS_H
