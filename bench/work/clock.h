// Time: nanoseconds of the system, and the processor's own counter for single operations.
#pragma once
#include <stdint.h>
#include <time.h>

inline uint64_t nanoseconds(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  // The fences keep the timed call from being run beside its neighbours.
  uint32_t low, high;
  asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
  return static_cast<uint64_t>(high) << 32 | low;
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(value)::"memory");
  return value;
#else
  return nanoseconds();
#endif
}

// What a span with nothing in it takes now, in ticks: the mean without outliers, since where the counter goes
// in steps the least would be too little. 0 when nothing can be said.
inline double empty_span() {
  constexpr int kTries = 2000;
  uint64_t least = ~uint64_t{0}, sum = 0, counted = 0;
  for (int i = 0; i < 2 * kTries; ++i) {
    const uint64_t start = ticks();
    const uint64_t span = ticks() - start;
    if (i < kTries) {
      if (span < least) least = span;
    } else if (span <= 2 * least + 100) {
      sum += span;
      ++counted;
    }
  }
  return counted == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(counted);
}

// Found once by ticks_calibrate: how long a tick is, and what reading the counter twice costs.
struct TickScale {
  double nanoseconds_per_tick;
  uint64_t overhead;
};

extern TickScale tick_scale;
void ticks_calibrate();

// Nanoseconds of a span of ticks, without the cost of reading the counter.
inline uint64_t ticks_to_nanoseconds(uint64_t span) {
  span -= span < tick_scale.overhead ? span : tick_scale.overhead;
  return static_cast<uint64_t>(static_cast<double>(span) * tick_scale.nanoseconds_per_tick + 0.5);
}
