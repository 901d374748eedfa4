// Heaps that no thread has: records without anything, and a few *parked* heaps. A thread that ends leaves its
// heap parked, with its slabs and magazines, and a thread that starts takes it over as it is. So where short
// threads follow each other, neither end nor start moves blocks or slabs.
//
// A parked heap is like that of a thread that sleeps: its slabs have it as their owner, and other threads'
// frees go to remote words and to its inbox. They look at the inbox now and then, because nobody else does.
// What a parked heap holds is bounded, and ticks give it up step by step once it has rested for decay_ms.
// Whoever works with a parked heap borrows it first, so two threads never do.
#ifndef HUMMOCK_HEAP_HEAP_POOL_H
#define HUMMOCK_HEAP_HEAP_POOL_H

#include "heap/heap.h"

namespace hummock::heap {

// For a thread that starts. What it gets has no slabs and no blocks, or comes from a thread that ended. Null:
// no memory.
Heap* take_heap();

// The next two are for a heap whose thread ends. The first parks it; false: it holds too much or nothing, or
// enough are parked. The second gives up all that the heap holds, and keeps the record.
bool park(Heap* heap);
void give_up(Heap* heap);

extern uint32_t parked_count;  // atomic, relaxed: a hint
inline bool any_parked() {
  return relaxed(parked_count) != 0;
}
// Others posted slabs to a parked heap. Atomic, relaxed: a hint
extern bool parked_heap_waits;
// Looks at some of these slabs.
void serve_parked();
// Takes a step to give up a parked heap that has rested long enough.
void tick_parked(uint64_t now);
// Gives up all parked heaps that nobody has borrowed: for a trim, and before memory is refused. False: there
// was none.
bool give_up_parked();

// Adds the free blocks in the magazines of parked heaps, by class.
void count_parked(uint32_t* per_class);

// Parked heaps that another thread had borrowed are lost to the child.
void pool_at_fork(os::ForkStep step);
bool pool_is_locked();
// What the parked heaps have earned (heap/allowance.h). For the child of a fork, which is alone.
size_t earned_by_parked();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_HEAP_POOL_H
