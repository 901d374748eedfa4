// A thread's heap: from its first block to its end; start of the library; fork.
#ifndef HUMMOCK_HEAP_ATTACH_H
#define HUMMOCK_HEAP_ATTACH_H

#include "heap/allocate.h"
#include "heap/user.h"

namespace hummock::heap {

// The calling thread's heap, given one if it has none. Null when memory is short, and in checked mode,
// where no thread has one.
Heap* attach_now();
inline Heap* attach() {
  Heap* heap = thread_heap;
  return __builtin_expect(heap->attached, true) ? heap : attach_now();
}

// A first-class heap for all threads that can have none of their own, as nobody would tell of their ends.
// Null when memory is short.
UserHeap* common_heap();

// Modes that keep every call on the slow path: checked, and served (heap/served.h). Each reads the options
// first if nobody did.
bool read_is_checked();
bool read_is_served();
void set_plain(bool plain);
// After a change of is_plain, or of what is sampled.
void settle_fast_limit();
inline bool sees_every_call() {
  return !relaxed(is_plain);
}
inline bool is_checked() {
  return sees_every_call() && read_is_checked();
}
inline bool is_served() {
  return sees_every_call() && read_is_served();
}

// Reads the options and makes the thread-exit key, once.
void initialise();

// The calling thread's heap, if it has one, is given up: what is in it goes back or to others. It may get
// another one; where the system tells of a thread's end but once, that is given up with the next block.
void end_thread();

// When no other thread is left: was one stopped inside a lock that figures or checks need?
bool is_locked();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ATTACH_H
