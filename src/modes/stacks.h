// Each stack is kept once, for ever: programs allocate millions of blocks from thousands of places.
#ifndef HUMMOCK_MODES_STACKS_H
#define HUMMOCK_MODES_STACKS_H

#include <stdint.h>

namespace hummock::modes {

inline constexpr unsigned kMostFrames = 16;

struct Stack {
  uint64_t hash;
  Stack* next;  // of the same place in the table; fixed once the stack can be found
  uint32_t count;
  void* frames[1];  // `count` of them
};

// The calling thread's stack of at most `most` frames; null: none was asked for, or no more are kept.
// Takes no lock unless the stack is new.
Stack* current_stack(unsigned most);

// Prints lines of a report to standard error: "what by thread 12:" and the stack, if there is one.
void say_event(const char* what, uint32_t thread, const Stack* stack);
// The last lines of a report: "this call", and what led to it. The process ends.
[[noreturn]] void end_report();

}  // namespace hummock::modes

#endif  // HUMMOCK_MODES_STACKS_H
