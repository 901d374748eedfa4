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

namespace hummock::modes::sampling {

inline constexpr uint64_t kMostMean = uint64_t{1} << 40;

// Starts, stops, or changes the mean. Returns 0; EINVAL; ENOMEM without memory that others can read; EPERM
// while a mode or hook sees every call. Any thread, at any time; takes no lock.
int set_mean(uint64_t mean);
// A step of it, of four system calls at most, but for what claim_shared() makes. False: there are more. One
// thread at a time; `so_far` begins with {}.
bool set_mean_some(uint64_t mean, os::SharedInSteps* so_far, int* error);

// At the start of the program, if the options ask for samples. If the parent process shares memory for them,
// the first sample takes a part of it, also in each child of a fork.
void start(uint64_t mean);
// In the child of a fork: lets go of the table, which is the parent's.
void in_child();

// A guarded block is freed: ends its sample, if it has one.
void forget(const void* p);

}  // namespace hummock::modes::sampling

#endif  // HUMMOCK_MODES_SAMPLING_H
