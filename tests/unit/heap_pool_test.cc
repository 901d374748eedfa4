// Heaps of threads that have ended: the next thread takes them over, or they give up what they hold.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

using namespace hummock;

SlabHeader* slab_of(const void* block) {
  SlabHeader* slot = pages::header_of(block);
  return slot - slot->back;
}

// In a new thread, which then ends.
std::vector<void*> blocks_of_a_thread(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  support::in_thread([&] {
    for (void*& block : blocks) block = hummock_malloc(size);
  });
  return blocks;
}

unsigned count_parked() {
  return heap::parked_count;
}

}  // namespace

TEST_CASE("a thread that starts has the slabs and the magazines of one that ended") {
  if (support::checked()) return;
  heap::give_up_parked();
  void* freed = nullptr;
  void* kept = nullptr;
  heap::Heap* first = nullptr;
  support::in_thread([&] {
    kept = hummock_malloc(300);
    freed = hummock_malloc(300);
    hummock_free(freed);
    first = heap::thread_heap;
  });
  REQUIRE(count_parked() == 1);
  CHECK(slab_of(kept)->owner == reinterpret_cast<uintptr_t>(first));
  CHECK(slab_of(kept)->freer == 0);  // another thread may have that address by now
  support::in_thread([&] {
    CHECK(hummock_malloc(300) == freed);
    CHECK(heap::thread_heap == first);
    CHECK(slab_of(kept)->freer == os::thread_address());
    CHECK(count_parked() == 0);
    hummock_free(kept);
    hummock_free(freed);
  });
}

TEST_CASE("few heaps are parked, none that holds nothing, and none after a trim") {
  if (support::checked()) return;
  heap::give_up_parked();
  support::in_thread([] { hummock_free(hummock_malloc(1 << 20)); });
  CHECK(count_parked() == 0);
  std::vector<std::thread> crew;
  std::vector<void*> left(20);
  pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, static_cast<unsigned>(left.size()));
  for (void*& block : left) {
    crew.emplace_back([&] {
      block = hummock_malloc(100);
      pthread_barrier_wait(&all);
    });
  }
  for (std::thread& thread : crew) thread.join();
  CHECK(count_parked() == 4);
  hummock_trim(0);
  CHECK(count_parked() == 0);
  for (const void* block : left) CHECK(slab_of(block)->owner == kShared);
  for (void* block : left) hummock_free(block);
}

TEST_CASE("a heap that holds much is not parked") {
  if (support::checked()) return;
  heap::give_up_parked();
  std::vector<void*> blocks(200 * 64);  // in more than 128 slabs
  support::in_thread([&] {
    for (void*& block : blocks) block = hummock_malloc(1000);
    for (size_t i = 0; i < blocks.size(); i += 16) {  // else full slabs are given away at once
      hummock_free(blocks[i]);
      blocks[i] = nullptr;
    }
  });
  CHECK(count_parked() == 0);
  CHECK(slab_of(blocks[1])->owner == kShared);
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("what others free to a parked heap ends its slabs, and the heap if no thread wants it") {
  if (support::checked()) return;
  heap::give_up_parked();
  for (const size_t size : {100, 1000, 20000}) {
    CAPTURE(size);
    const size_t count = (size_t{5} << 20) / size;
    const std::vector<void*> blocks = blocks_of_a_thread(count, size);
    REQUIRE(count_parked() == 1);
    std::vector<SlabHeader*> slabs;
    for (const void* block : blocks) {
      if (slabs.empty() || slabs.back() != slab_of(block)) slabs.push_back(slab_of(block));
    }
    for (void* block : blocks) hummock_free(block);
    heap::flush_remote(heap::thread_heap);
    size_t in_use = 0;
    for (const SlabHeader* slab : slabs) in_use += slab->kind == Kind::slab;
    CHECK(in_use <= slabs.size() / 8 + 1);  // what came last waits in remote words or in the inbox
    heap::give_up_parked();
    for (const SlabHeader* slab : slabs) CHECK(slab->kind != Kind::slab);
  }
}

TEST_CASE("the child of a fork has the parked heaps, too") {
  if (support::checked()) return;
  heap::give_up_parked();
  const std::vector<void*> blocks = blocks_of_a_thread(100, 300);
  REQUIRE(count_parked() == 1);
  const pid_t child = fork();
  if (child == 0) {
    bool good = count_parked() == 1;
    std::thread([&] {
      good = good && hummock_malloc(300) != nullptr && count_parked() == 0;
      for (void* block : blocks) hummock_free(block);
    }).join();
    hummock_trim(0);
    _exit(good && count_parked() == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("ticks give up a heap that no thread takes over") {
  if (support::checked()) return;
  heap::give_up_parked();
  REQUIRE(hummock_option_set("decay_ms", "1") == 0);
  const std::vector<void*> blocks = blocks_of_a_thread(1000, 300);
  REQUIRE(count_parked() == 1);
  for (int i = 0; i < 100000 && count_parked() != 0; ++i) {
    usleep(1000);
    heap::tick();
  }
  CHECK(count_parked() == 0);
  CHECK(slab_of(blocks[0])->owner == kShared);
  for (void* block : blocks) hummock_free(block);
  REQUIRE(hummock_option_set("decay_ms", "1000") == 0);
}

TEST_CASE("parked heaps give up what they hold before malloc is refused") {
  if (support::checked()) return;
  heap::give_up_parked();
  std::vector<std::thread> crew;
  pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, 4);
  for (int t = 0; t < 4; ++t) {
    crew.emplace_back([&] {
      for (size_t size = 16; size <= 8192; size += size / 8) hummock_free(hummock_malloc(size));
      pthread_barrier_wait(&all);
    });
  }
  for (std::thread& thread : crew) thread.join();
  REQUIRE(count_parked() != 0);
  hummock_stats_t its = {};
  its.size = sizeof its;
  REQUIRE(hummock_stats(&its) == 0);
  const size_t large = size_t{64} << 20;
  const std::string limit = std::to_string(its.committed + large - (size_t{1} << 20));
  REQUIRE(hummock_option_set("limit_hard", limit.c_str()) == 0);
  void* block = hummock_malloc(large);
  CHECK(block != nullptr);
  CHECK(count_parked() == 0);
  hummock_free(block);
  REQUIRE(hummock_option_set("limit_hard", "0") == 0);
}
