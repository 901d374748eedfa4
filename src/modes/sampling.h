// Sampling: one block in so many bytes is remembered, with its stack, until it is freed.
//
// While it is on, fast_limit is 0 (heap/allocate.h), so every malloc takes a slower path. There a thread
// counts down the bytes that it asks for. Most blocks are then served like any other. When the count runs
// out, the block is sampled and a new count is drawn. Each byte has the same small chance, so the counts are
// drawn from the exponential distribution, and what a sample represents is right on average.
//
// Sampled blocks are in slabs of a first-class heap of their own, or are large blocks that are marked as that
// heap's. free takes its slow path for those anyway, so other frees cost what they always do.
#ifndef HUMMOCK_MODES_SAMPLING_H
#define HUMMOCK_MODES_SAMPLING_H

#include "heap/modes.h"
#include "modes/sample_table.h"
#include "os/os.h"

namespace hummock::modes {

namespace sampling {

// Bytes from one sample to the next, on average; 0: off. 1: every block is sampled.
inline constexpr uint64_t kMostMean = uint64_t{1} << 40;

// Starts, stops, or changes the mean. Returns 0; EINVAL; ENOMEM without memory that others can read; EPERM
// while a mode or hook sees every call. Any thread, at any time; takes no lock.
int set_mean(uint64_t mean);
// A step of it, of four system calls at most, but for what claim_shared() makes. False: there are more. One
// thread at a time; `so_far` begins with {}.
bool set_mean_some(uint64_t mean, os::SharedInSteps* so_far, int* error);
uint64_t mean();

// At the start of the program, if the options ask for samples. If the parent process shares memory for them,
// the first sample takes a part of it, also in each child of a fork.
void start(uint64_t mean);
// In the child of a fork: lets go of the table, which is the parent's.
void in_child();
// The option `guards` (modes/guards.h) has changed. Guarded blocks are sampled ones, with or without a
// profile; while there is a profile, its mean holds for both.
void renew_guards();

// The count ran out: draws a new one. True: the block is to be sampled; the thread has a heap then.
bool is_due(size_t size);

// Allocates a block with a guard, a sample, or both; null: neither is possible. At most kMaxSmall bytes.
void* allocate_small(size_t align, size_t size, bool zero);
// Makes a sample for a large block.
void mark_large(void* block, size_t size);

// A live block of the heap of samples is freed: ends its sample. True: the block is large, and the caller
// frees it.
bool release(const heap::Block& block, void* p);

// A guarded block is freed: ends its sample, if it has one.
void forget(const void* p);

// A sample is taken out of the table while its large block is resized. The resized block counts as a new one.
Resampling begin_resize(const heap::Block& block);
// `resized` null: the block did not change.
void end_resize(const Resampling& before, const heap::Block& block, void* resized, size_t size);

}  // namespace sampling
}  // namespace hummock::modes

#endif  // HUMMOCK_MODES_SAMPLING_H
