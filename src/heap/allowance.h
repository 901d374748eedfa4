// How many bytes of free blocks a thread's magazines may hold: a fixed amount, and what the thread earned
// from one budget for all threads. A thread may earn two fair shares, because not all threads need theirs.
// When the budget runs short, a thread that has more than one share gives the excess back at its next sweep.
// Invariant: the sum of `earned` of all heaps is at most what the budget was when something was last earned.
#ifndef HUMMOCK_HEAP_ALLOWANCE_H
#define HUMMOCK_HEAP_ALLOWANCE_H

#include "heap/heap.h"

namespace hummock::heap {

inline constexpr uint32_t kAtRest = 64 << 10;

// Lets the heap hold so much more. False: it may not.
bool hold(Heap* heap, size_t bytes);
inline void let_go(Heap* heap, size_t bytes) {
  heap->held -= static_cast<uint32_t>(bytes);
}

// Gives back what the heap earned and does not need.
void settle(Heap* heap);
// The heap has more than its share while the budget is short.
bool has_too_much(const Heap* heap);

// A thread gets a heap, or has none any more.
void enter_thread();
void leave_thread();
// For a heap that holds nothing.
void give_up_earned(Heap* heap);

// Threads that have a heap.
size_t count_threads();

// In the child of a fork: the only thread there has this heap, or none (null). Parked heaps have earned so
// much (heap/heap_pool.h).
void forget_others(const Heap* heap, size_t earned_by_parked);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOWANCE_H
