// A C library that cannot tell of a thread's end, and a program that has all keys: its threads share a heap.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

// In place of libc's.
extern "C" int __cxa_thread_atexit_impl(void (*)(void*), void*, void*) {
  return -1;
}

TEST_CASE("threads whose ends nobody tells share a heap") {
  for (pthread_key_t key; pthread_key_create(&key, nullptr) == 0;) {
  }
  hummock_free(hummock_malloc(1));  // the library starts here
  if (support::checked()) return;
  std::atomic<size_t> lost{0};
  std::atomic<void*> handed{nullptr};
  const auto live = [&](uint64_t seed) {
    support::Random random(seed);
    void* blocks[64] = {};
    size_t sizes[64] = {};
    for (size_t i = 0; i < support::scaled(20000, 500); ++i) {
      const size_t at = random.below(64);
      if (blocks[at] != nullptr && !support::intact(blocks[at], at, sizes[at])) ++lost;
      hummock_free(handed.exchange(blocks[at]));
      sizes[at] = random.size_up_to(200000);
      blocks[at] = random.one_in(3) ? hummock_memalign(size_t{1} << random.between(4, 14), sizes[at])
                                    : hummock_malloc(sizes[at]);
      if (blocks[at] == nullptr) ++lost;
      support::fill(blocks[at], at, sizes[at]);
    }
    for (void* block : blocks) hummock_free(block);
  };
  for (int round = 0; round < 20; ++round) {
    std::thread one(live, round * 2), two(live, round * 2 + 1);
    one.join();
    two.join();
  }
  hummock_free(handed.exchange(nullptr));
  CHECK(lost == 0);
  CHECK(support::figures().threads == 0);
  CHECK(support::figures().mapped <= size_t{128} << 20);
}
