// The system refuses: what then becomes of mappings, records, heaps and memory that was freed.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/refusing.h"
#include "support/support.h"

using namespace support::refusing;

TEST_CASE("mappings that the system does not take back serve the next blocks") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  hummock_trim(0);
  std::vector<void*> blocks(24);
  for (void*& block : blocks) {
    REQUIRE((block = hummock_malloc(40 * kMiB)) != nullptr);
    support::fill(block, 7, 40 * kMiB);
  }
  {
    Refusing refusing(kUnmap, 0, SIZE_MAX);
    for (void* block : blocks) hummock_free(block);
    hummock_trim(0);
  }
  Refusing refusing(kMap, 0, SIZE_MAX);
  for (void*& block : blocks) {
    block = hummock_calloc(1, 40 * kMiB);
    REQUIRE(block != nullptr);
    CHECK(support::all_zero(block, 0, 40 * kMiB));
  }
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("a thread gets its record where nothing can be mapped, if there is memory that was freed") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(hummock_malloc(300 * kKiB));
  for (void* block : blocks) hummock_free(block);
  std::atomic<size_t> served{0}, running{0};
  constexpr size_t kThreads = 100;  // more than the records of one chunk
  std::atomic<bool> go{false};
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) {
    crew.emplace_back([&] {
      ++running;
      while (!go) std::this_thread::yield();
      void* block = hummock_malloc(100);
      served += block != nullptr;
      hummock_free(block);
      --running;
      while (running != 0) std::this_thread::yield();  // its record is nobody else's meanwhile
    });
  }
  while (running != kThreads) std::this_thread::yield();
  {
    Refusing refusing(kMap, 0, SIZE_MAX);
    go = true;
    for (std::thread& thread : crew) thread.join();
  }
  CHECK(served == kThreads);
}

TEST_CASE("without new memory, what was freed can be had again") {
  support::HangGuard guard(60);
  constexpr size_t kCount = 3000;
  std::vector<void*> blocks(kCount);
  for (void*& block : blocks) block = hummock_malloc(1000);
  Refusing refusing(kMap, 0, SIZE_MAX);
  size_t more = 0;
  std::vector<void*> extra;
  while (void* block = hummock_malloc(1000)) {
    extra.push_back(block);
    REQUIRE(++more < 10000000);
  }
  CHECK(errno == ENOMEM);
  for (void* block : blocks) hummock_free(block);
  size_t again = 0;
  for (void*& block : blocks) again += (block = hummock_malloc(1000)) != nullptr;
  if (!support::checked()) CHECK(again == kCount);
  for (void* block : blocks) hummock_free(block);
  for (void* block : extra) hummock_free(block);
}

TEST_CASE("heaps without memory") {
  support::HangGuard guard(60);
  for (size_t first = 0; first < 6; ++first) {
    hummock_heap_t* heap = nullptr;
    std::vector<void*> blocks;
    {
      Refusing refusing(kMap, first, SIZE_MAX);
      errno = 0;
      heap = hummock_heap_create();
      if (heap == nullptr) CHECK(errno == ENOMEM);
      for (size_t i = 0; heap != nullptr && i < 400000; ++i) {
        void* block = hummock_heap_malloc(heap, 3000);
        if (block == nullptr) break;
        support::fill(block, i, 3000);
        blocks.push_back(block);
      }
    }
    for (size_t i = 0; i < blocks.size(); ++i) REQUIRE(support::intact(blocks[i], i, 3000));
    hummock_heap_destroy(heap);
  }
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  CHECK(hummock_heap_malloc(heap, 3000) != nullptr);
  hummock_heap_destroy(heap);
}

TEST_CASE("memory that the system would not take back is not lost for good") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  const size_t before = support::figures().live;
  {
    Refusing refusing(kAdvise | kUnmap, 0, SIZE_MAX);
    for (int round = 0; round < 4; ++round) {
      void* blocks[8];
      for (void*& block : blocks) block = hummock_malloc(24 * kMiB);
      for (void* block : blocks) hummock_free(block);
      hummock_trim(0);
    }
  }
  check_usable();
  hummock_trim(0);
  CHECK(support::figures().live <= before + kMiB);
  CHECK(support::figures().mapped <= size_t{2} << 30);
}
