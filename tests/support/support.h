// What the tests share: a seeded generator, the scale of a run, hang protection, block patterns.
//
//   TEST_SEED=n    repeats a run (the seed of every run is printed)
//   TEST_SCALE=x   multiplies the number of rounds (default 1; 0.05 under a sanitizer)
#ifndef HUMMOCK_TESTS_SUPPORT_H
#define HUMMOCK_TESTS_SUPPORT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HUMMOCK_TEST_SANITIZED 1
#else
#define HUMMOCK_TEST_SANITIZED 0
#endif

// 1 when the program runs under qemu-user: tests/CMakeLists.txt defines it for a cross build.
#ifndef HUMMOCK_TEST_EMULATED
#define HUMMOCK_TEST_EMULATED 0
#endif

namespace support {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  size_t below(size_t limit) { return static_cast<size_t>(next() % limit); }
  size_t between(size_t least, size_t most) { return least + below(most - least + 1); }
  bool one_in(size_t n) { return below(n) == 0; }

  // Log-uniform: every doubling up to `most` is as likely as any other; 0 now and then.
  size_t size_up_to(size_t most) {
    const size_t top = static_cast<size_t>(64 - __builtin_clzll(most | 1));
    const size_t bits = below(top + 1);
    if (bits == 0) return 0;
    const size_t least = size_t{1} << (bits - 1);
    return std::min(most, least + below(least));
  }

 private:
  uint64_t state_;
};

inline uint64_t run_seed() {
  static const uint64_t seed = [] {
    const char* text = getenv("TEST_SEED");
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t drawn =
        (static_cast<uint64_t>(now.tv_nsec) * 2654435761u ^ static_cast<uint64_t>(getpid())) & 0xFFFFFFFFu;
    const uint64_t chosen = text != nullptr ? strtoull(text, nullptr, 0) : drawn;
    fprintf(stderr, "TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return seed;
}

inline double scale() {
  static const double factor = [] {
    const char* text = getenv("TEST_SCALE");
    return text != nullptr ? strtod(text, nullptr) : HUMMOCK_TEST_SANITIZED ? 0.05 : 1.0;
  }();
  return factor;
}

// `rounds` scaled, never under `least`.
inline size_t scaled(size_t rounds, size_t least = 1) {
  return std::max(least, static_cast<size_t>(static_cast<double>(rounds) * scale()));
}

// Limits are against hangs alone. `seconds` are far too long for a case on an idle machine; one that is busy
// with ten other things gets five times as long, an emulator four times that.
inline constexpr unsigned kPatience = HUMMOCK_TEST_EMULATED ? 20 : 5;

// A hang ends the program by SIGALRM, whatever runs it, and is told.
struct HangGuard {
  explicit HangGuard(unsigned seconds) {
    signal(SIGALRM, [](int) {
      constexpr char kSaid[] = "HangGuard: this test case hangs, or the machine is far too slow for it\n";
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
      signal(SIGALRM, SIG_DFL);
      raise(SIGALRM);
    });
    alarm(kPatience * seconds);
  }
  ~HangGuard() { alarm(0); }
};

// ---- Patterns: every 8-byte word of a block follows from a tag and its offset -------------------

inline uint64_t pattern_word(uint64_t tag, size_t offset) {
  uint64_t z = (tag + offset) * 0x9E3779B97F4A7C15u;
  return z ^ (z >> 29);
}

// Blocks up to kDense bytes are covered completely, larger ones at both ends and at spread points, so
// that millions of operations do not spend their time in page faults.
inline constexpr size_t kDense = 2048;
inline constexpr size_t kSpread = 12;

// Calls visit(offset, length), length ≤ 8, for the covered pieces of a block of `size` bytes.
template <class Visit>
void for_covered(uint64_t tag, size_t size, Visit visit) {
  const auto run = [&](size_t from, size_t to) {
    for (size_t at = from; at < to; at += 8) visit(at, std::min<size_t>(8, to - at));
  };
  if (size <= kDense) return run(0, size);
  run(0, 256);
  Random points(tag);
  for (size_t i = 0; i < kSpread; ++i) visit(256 + (points.below(size - 512) & ~size_t{7}), 8);
  run((size - 256) & ~size_t{7}, size);
}

inline void fill(void* block, uint64_t tag, size_t size) {
  char* bytes = static_cast<char*>(block);
  for_covered(tag, size, [&](size_t offset, size_t length) {
    const uint64_t word = pattern_word(tag, offset);
    memcpy(bytes + offset, &word, length);
  });
}

// Of a block filled as one of `size` bytes, are the first `kept` bytes as they were?
inline bool intact(const void* block, uint64_t tag, size_t size, size_t kept) {
  const char* bytes = static_cast<const char*>(block);
  bool same = true;
  for_covered(tag, size, [&](size_t offset, size_t length) {
    if (offset >= kept) return;
    const uint64_t word = pattern_word(tag, offset);
    same &= memcmp(bytes + offset, &word, std::min(length, kept - offset)) == 0;
  });
  return same;
}
inline bool intact(const void* block, uint64_t tag, size_t size) {
  return intact(block, tag, size, size);
}

inline bool all_zero(const void* block, size_t from, size_t to) {
  const char* bytes = static_cast<const char*>(block);
  if (from >= to) return true;
  return bytes[from] == 0 && memcmp(bytes + from, bytes + from + 1, to - from - 1) == 0;
}

inline bool is_aligned(const void* block, size_t alignment) {
  return (reinterpret_cast<uintptr_t>(block) & (alignment - 1)) == 0;
}

}  // namespace support

#endif  // HUMMOCK_TESTS_SUPPORT_H
