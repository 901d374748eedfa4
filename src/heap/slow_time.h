// How long calls take that leave the fast path: one in 256 of those that fill a bin is timed.
#ifndef HUMMOCK_HEAP_SLOW_TIME_H
#define HUMMOCK_HEAP_SLOW_TIME_H

#include <stdint.h>

namespace hummock::heap {

// Bucket i counts calls of less than 2^(i + 6) ns, and of at least half as much; the last has all longer
// ones.
inline constexpr unsigned kTimeBuckets = 24;
struct SlowTimes {
  uint64_t count[kTimeBuckets];
  uint64_t total_ns;
};
extern SlowTimes slow_times;  // atomic, relaxed: figures

inline unsigned bucket_of(uint64_t ns) {
  if (ns < 64) return 0;
  const unsigned log = 63u ^ static_cast<unsigned>(__builtin_clzll(ns));  // 6 for 64
  return log - 5 < kTimeBuckets ? log - 5 : kTimeBuckets - 1;
}

inline void note_time(uint64_t ns) {
  __atomic_fetch_add(&slow_times.count[bucket_of(ns)], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&slow_times.total_ns, ns, __ATOMIC_RELAXED);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_SLOW_TIME_H
