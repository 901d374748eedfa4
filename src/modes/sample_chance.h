// The numbers of sampling: when the next sample comes, and what one stands for.
#ifndef HUMMOCK_MODES_SAMPLE_CHANCE_H
#define HUMMOCK_MODES_SAMPLE_CHANCE_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::modes::sampling {

// Bytes until the next sample begins, of the exponential distribution with this mean, rounded up. 0 where the
// mean is 1: every block. `random` is not 0, and goes on.
uint64_t next_count(uint64_t* random, uint64_t mean);

// A block of `size` bytes is sampled with the chance p = 1 - e^(-size / mean). It then stands for 1 / p
// blocks (in units of 1/65536) and size / p bytes, so that sums are right on average. Size 0 counts as 1.
struct Weight {
  uint64_t bytes, blocks;
};
Weight weight_of(size_t size, uint64_t mean);

}  // namespace hummock::modes::sampling

#endif  // HUMMOCK_MODES_SAMPLE_CHANCE_H
