// How many bytes of free blocks a thread's magazines may hold: a little at rest, and what it earned from one
// budget for all threads. A thread may have two fair shares of that, as not all threads need theirs. When the
// budget runs short, who has more than one gives it back when it comes by.
// Invariant: the sum of `earned` of all heaps is at most the budget when some was earned last.
#ifndef HUMMOCK_HEAP_ALLOWANCE_H
#define HUMMOCK_HEAP_ALLOWANCE_H

#include "heap/heap.h"

namespace hummock::heap {

inline constexpr uint32_t kAtRest = 64 << 10;

// The heap is to hold so much more. False: it may not.
bool hold(Heap* heap, size_t bytes);
inline void let_go(Heap* heap, size_t bytes) {
  heap->held -= static_cast<uint32_t>(bytes);
}

// Gives back what was earned and is not needed.
void settle(Heap* heap);
// It has more than its share while the budget is short.
bool has_too_much(const Heap* heap);

// A thread has got a heap, or given it up; it holds nothing then.
void enter_thread();
void leave_thread(Heap* heap);

// Threads that have a heap.
size_t count_threads();

// In the child of a fork: the only thread there has this heap, or none (null).
void forget_others(const Heap* heap);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOWANCE_H
