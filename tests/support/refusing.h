// Makes the system refuse: each of its calls can be made to fail.
#ifndef HUMMOCK_TESTS_REFUSING_H
#define HUMMOCK_TESTS_REFUSING_H

#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <sys/mman.h>

#include <atomic>

#include "os/os.h"
#include "support/support.h"

namespace support::refusing {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = size_t{1} << 20;

enum Call : unsigned { kMap = 1, kUnmap = 2, kAdvise = 4, kRemap = 8, kAll = 15 };

inline const hummock::os::Calls real = hummock::os::calls;

// Which calls fail: those of `which`, from the `first`-th on, `count` of them; or one in `one_in`, by chance.
struct Plan {
  std::atomic<unsigned> which{0};
  std::atomic<size_t> seen{0};
  std::atomic<size_t> refused{0};
  size_t first = 0;
  size_t count = 0;
  size_t one_in = 0;
  uint64_t seed = 0;
};
inline Plan plan;

inline bool refuse(Call call) {
  if ((plan.which.load() & call) == 0) return false;
  const size_t turn = plan.seen.fetch_add(1);
  if (plan.one_in != 0) {
    if (!support::Random(plan.seed + turn).one_in(plan.one_in)) return false;
  } else if (turn < plan.first || turn - plan.first >= plan.count) {
    return false;
  }
  plan.refused.fetch_add(1);
  errno = ENOMEM;
  return true;
}

inline void* map(void* hint, size_t size, int protection, int flags) {
  return refuse(kMap) ? MAP_FAILED : real.map(hint, size, protection, flags);
}
inline int unmap(void* address, size_t size) {
  return refuse(kUnmap) ? -1 : real.unmap(address, size);
}
inline int advise(void* address, size_t size, int advice) {
  return refuse(kAdvise) ? -1 : real.advise(address, size, advice);
}
inline void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return refuse(kRemap) ? MAP_FAILED : real.remap(address, old_size, new_size, flags, target);
}

class Refusing {
 public:
  Refusing(unsigned which, size_t first, size_t count) {
    plan.first = first;
    plan.count = count;
    plan.seen = 0;
    plan.refused = 0;
    plan.which = which;
    hummock::os::calls = {map, unmap, advise, remap};
  }
  // By chance.
  Refusing(unsigned which, uint64_t seed, size_t one_in, bool) : Refusing(which, 0, 0) {
    plan.seed = seed;
    plan.one_in = one_in;
  }
  ~Refusing() {
    hummock::os::calls = real;
    plan.which = 0;
    plan.one_in = 0;
  }
  static size_t refused() { return plan.refused.load(); }
  static size_t seen() { return plan.seen.load(); }
};

// The system gives memory again.
inline void check_usable() {
  for (size_t size : {size_t{10}, 10 * kKiB, 300 * kKiB, 20 * kMiB, 70 * kMiB}) {
    void* block = hummock_malloc(size);
    CHECK(block != nullptr);
    if (block != nullptr) support::fill(block, size, size);
    block = hummock_realloc(block, size * 2);
    CHECK(block != nullptr);
    if (block != nullptr) CHECK(support::intact(block, size, size));
    hummock_free(block);
  }
}

}  // namespace support::refusing

#endif  // HUMMOCK_TESTS_REFUSING_H
