// Deterministic random numbers: xorshift64*, seeded through splitmix64.
#pragma once
#include <stddef.h>
#include <stdint.h>

class Rng {
 public:
  explicit Rng(uint64_t seed = 1) { reset(seed); }

  void reset(uint64_t seed) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = (z ^ (z >> 31)) | 1;
  }

  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }

  // Uniform in [0, n); n below 2^32.
  size_t below(size_t n) { return static_cast<size_t>(((next() >> 32) * n) >> 32); }

  // Uniform in [low, high], of any size.
  size_t between(size_t low, size_t high) {
    const unsigned __int128 product = static_cast<unsigned __int128>(next()) * (high - low + 1);
    return low + static_cast<size_t>(product >> 64);
  }

  bool one_in(size_t n) { return below(n) == 0; }

  // Log-uniform in [low, high]: each doubling is as likely, uniform within it.
  size_t log_uniform(size_t low, size_t high) {
    const size_t ratio = high / low;
    const unsigned doublings =
        ratio <= 1 ? 1 : 63 - static_cast<unsigned>(__builtin_clzll(ratio)) + ((ratio & (ratio - 1)) != 0);
    for (;;) {
      const size_t base = low << below(doublings);
      const size_t size = base + below(base + 1);
      if (size <= high) return size;
    }
  }

 private:
  uint64_t state_ = 1;
};
