// A program that has all 1,024 keys of the process before the library wants one.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <pthread.h>

#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

namespace {

std::vector<pthread_key_t> keys;
int mine;
int ended, foreign;

void end(void* value) {
  value == &mine ? ++ended : ++foreign;
  hummock_free(hummock_malloc(100));  // after the thread's heap is gone
}

// At the very end of a thread, after its heap was given up, too.
struct Late {
  ~Late() { hummock_free(hummock_malloc(200)); }
};

void live() {
  static thread_local Late late;
  (void)&late;
  pthread_setspecific(keys[0], &mine);
  std::vector<void*> blocks;
  for (size_t i = 0; i < 400; ++i) blocks.push_back(hummock_malloc(i * 20 + 1));
  for (void* block : blocks) hummock_free(block);
  if (pthread_getspecific(keys[0]) != &mine) ++foreign;
}

}  // namespace

TEST_CASE("without a key a thread's end is told, and nobody's key is written to") {
  for (pthread_key_t key; pthread_key_create(&key, end) == 0;) keys.push_back(key);
  REQUIRE(keys.size() > 500);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose runtimes have taken one
  REQUIRE(keys[0] == 0);
#endif
  hummock_free(hummock_malloc(1));  // the library starts here
  if (support::checked()) return;
  constexpr int kThreads = 500;
  std::thread(live).join();
  const size_t before = support::figures().mapped;
  for (int i = 0; i < kThreads; ++i) std::thread(live).join();
  CHECK(foreign == 0);
  CHECK(ended == kThreads + 1);
  CHECK(support::figures().threads <= 2);
  CHECK(support::figures().mapped <= before + (size_t{32} << 20));
  for (pthread_key_t key : keys) pthread_key_delete(key);
}
