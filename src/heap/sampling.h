// Sampling: one block in so many bytes is remembered, with its stack, until it is freed.
//
// While it is on, fast_limit is 0 (heap/allocate.h), so every malloc takes the slow route. There a thread
// counts down the bytes it asks for; most blocks are served at once like any other, and when the count runs
// out, the block is sampled and a new count drawn. Each byte has the same small chance to be the one, so the
// counts are drawn from the exponential distribution, and whatever a sample stands for is right on average.
//
// Sampled blocks stand in slabs of a first-class heap of their own, or are large blocks that are marked as
// that heap's. free sends those down its slow path already, so other frees cost what they always do.
#ifndef HUMMOCK_HEAP_SAMPLING_H
#define HUMMOCK_HEAP_SAMPLING_H

#include "heap/allocate.h"
#include "heap/sample_table.h"

namespace hummock::heap {

struct Block;

namespace sampling {

// Bytes from one sample to the next, on average; 0: off. 1: every block is sampled.
inline constexpr uint64_t kMostMean = uint64_t{1} << 40;

// Starts, stops, or changes the mean. 0, EINVAL, ENOMEM: no memory that others can read, EPERM: the modes
// and hooks that see every call have no profile. Any thread, at any time; takes no lock.
int set_mean(uint64_t mean);
uint64_t mean();

// At the start of the program, when the options ask for samples. Where who started it shares memory for that,
// a part is taken with the first sample, by each child of a fork, too.
void start(uint64_t mean);
// After a fork, in the child: the table is the parent's.
void in_child();
// Guards (heap/guards.h) were switched on or off: their blocks are sampled ones, whether or not there is a
// profile, and as many as the profile says while there is one.
void renew_guards();

// Is the block of so many bytes to be handed out like any other? Threads without a heap have no count.
__attribute__((always_inline)) inline bool passes(Heap* heap, size_t size) {
  const uint64_t until = relaxed(heap->until_sample);
  if (until <= size) return false;
  set_relaxed(heap->until_sample, until - size);
  return true;
}
// Counts that ran out are drawn anew. True: the block is to be sampled; the thread has a heap then.
bool is_due(size_t size);

// A block with a guard, a sample, or both; null: neither could be had. At most kMaxSmall bytes.
void* allocate_small(size_t align, size_t size, bool zero);
// A large block gets one.
void mark_large(void* block, size_t size);

// The call frees a live block of the heap of samples: its sample ends. True: that was all, the block was
// large.
bool release(const Block& block, void* p);

// A guarded block is freed.
void forget(const void* p);

// While a large block is resized its sample is at rest, if it has one; what it becomes counts as a new block.
struct Rest {
  bool had;
  hummock_profile_sample_t sample;
};
Rest begin_resize(const Block& block);
// `resized` null: nothing has changed.
void end_resize(const Rest& rest, const Block& block, void* resized, size_t size);

}  // namespace sampling
}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_SAMPLING_H
