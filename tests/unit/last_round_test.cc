// The program's own ends of keys, which libc calls in rounds, and which may allocate after ours was called
// for the last time.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <limits.h>
#include <pthread.h>

#include <thread>

#include "heap/attach.h"
#include "heap/heap.h"

namespace {

pthread_key_t key;
int rounds;  // in which the key's end is called

// Allocates, so that the thread has a heap again.
void end_round(void* value) {
  const auto round = reinterpret_cast<intptr_t>(value);
  void* block = hummock_malloc(1000);
  if (round < rounds) pthread_setspecific(key, reinterpret_cast<void*>(round + 1));
  hummock_free(block);
}

size_t count_records() {
  size_t count = 0;
  for (const hummock::heap::Heap* heap = hummock::heap::all_heaps(); heap != nullptr;
       heap = heap->next_record)
    ++count;
  return count;
}

}  // namespace

// ThreadSanitizer ends a thread in the last round, and no heap may end after that.
#if defined(__SANITIZE_THREAD__)
constexpr int kMostRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 2;
#else
constexpr int kMostRounds = PTHREAD_DESTRUCTOR_ITERATIONS + 1;
#endif

TEST_CASE("a thread whose keys' ends allocate in any round leaves its heap to the next thread") {
  hummock_free(hummock_malloc(1));  // our key comes first, so our end is called before the program's
  REQUIRE(pthread_key_create(&key, end_round) == 0);
  for (rounds = 1; rounds <= kMostRounds; ++rounds) {
    CAPTURE(rounds);
    const size_t before = count_records();
    for (int i = 0; i < 20; ++i) {
      std::thread([] {
        pthread_setspecific(key, reinterpret_cast<void*>(intptr_t{1}));
        hummock_free(hummock_malloc(1));
      }).join();
    }
    CHECK(count_records() <= before + 2);
  }
}
