// A thread's heap: from its first block to its end; start of the library; fork.
#ifndef HUMMOCK_HEAP_ATTACH_H
#define HUMMOCK_HEAP_ATTACH_H

#include "base/options.h"
#include "heap/allocate.h"
#include "heap/user.h"

namespace hummock::heap {

// The calling thread's heap; a thread without one gets one. Null: memory is short, or checked mode is on, in
// which no thread has a heap.
Heap* attach_now();
inline Heap* attach() {
  Heap* heap = thread_heap;
  return __builtin_expect(heap->attached, true) ? heap : attach_now();
}

// A first-class heap for all threads that cannot have their own, because Hummock would not learn of their
// end. Null: memory is short.
UserHeap* common_heap();

void set_plain(bool plain);
// Call it after a change of is_plain, or of what is sampled.
void settle_fast_limit();
inline bool sees_every_call() {
  return !relaxed(is_plain);
}

// Reads the options and makes the thread-exit key, once.
extern bool started HUMMOCK_HIDDEN;  // atomic: release when that is done
void initialise_now();
inline void initialise() {
  if (__builtin_expect(!__atomic_load_n(&started, __ATOMIC_ACQUIRE), false)) initialise_now();
}

// Is a mode on in which no thread has a heap: checked, or served (modes/served.h)?
inline bool is_served() {
  return sees_every_call() && (initialise(), options::values.space_initial != 0);
}
inline bool is_checked() {
  return sees_every_call() && (initialise(), options::values.checked && options::values.space_initial == 0);
}
inline bool is_replaced() {
  return sees_every_call() && (initialise(), options::values.checked || options::values.space_initial != 0);
}

// Gives up the calling thread's heap, if it has one: its memory is returned, or left to other threads. The
// thread may get another heap; where the system reports a thread's end only once, that one lasts for a single
// call.
void end_thread();

// For when no other thread is left: was one stopped inside a lock that figures or checks need?
bool is_locked();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ATTACH_H
