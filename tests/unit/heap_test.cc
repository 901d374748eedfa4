// First-class heaps: a set of blocks that can be ended together, from any thread.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

using support::figures;

namespace {
constexpr size_t kMiB = size_t{1} << 20;

// `live` counts blocks that rest in caches, so it may be off by a little either way.
constexpr size_t kSlack = 1 * kMiB;

bool about(size_t a, size_t b) {
  return a <= b + kSlack && b <= a + kSlack;
}
}  // namespace

TEST_CASE("an empty heap") {
  const size_t heaps = figures().heaps;
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  CHECK(figures().heaps == heaps + 1);
  const hummock_heap_stats_t stats = figures(heap);
  CHECK(stats.live_blocks == 0);
  CHECK(stats.live_bytes == 0);
  hummock_heap_destroy(heap);
  CHECK(figures().heaps == heaps);
  hummock_heap_destroy(nullptr);
}

TEST_CASE("statistics of a heap count its blocks exactly") {
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  std::vector<void*> blocks;
  size_t room = 0;
  support::Random random(support::run_seed());
  for (size_t i = 0; i < 20000; ++i) {
    if (random.one_in(3) && !blocks.empty()) {
      const size_t at = random.below(blocks.size());
      room -= hummock_usable_size(blocks[at]);
      random.one_in(2) ? hummock_free(blocks[at]) : hummock_heap_free(heap, blocks[at]);
      blocks[at] = blocks.back();
      blocks.pop_back();
    } else {
      void* block = hummock_heap_malloc(heap, random.size_up_to(200000));
      REQUIRE(block != nullptr);
      blocks.push_back(block);
      room += hummock_usable_size(block);
    }
  }
  const hummock_heap_stats_t stats = figures(heap);
  CHECK(stats.live_blocks == blocks.size());
  CHECK(stats.live_bytes == room);
  CHECK(stats.mapped_bytes >= stats.live_bytes);
  CHECK(stats.slabs > 0);
  for (void* block : blocks) hummock_free(block);
  CHECK(figures(heap).live_blocks == 0);
  CHECK(figures(heap).live_bytes == 0);
  hummock_heap_destroy(heap);
}

TEST_CASE("destroy frees every block") {
  support::HangGuard guard(120);
  const auto round = [] {
    hummock_heap_t* heap = hummock_heap_create();
    REQUIRE(heap != nullptr);
    support::Random random(7);
    for (size_t i = 0; i < 50000; ++i) {
      const size_t size = random.one_in(1000) ? random.below(20 * kMiB) : random.size_up_to(3000);
      void* block = hummock_heap_malloc(heap, size);
      REQUIRE(block != nullptr);
      support::fill(block, i, size);
    }
    hummock_heap_destroy(heap);
  };
  // What is kept for later is no leak.
  const auto settled = [] {
    hummock_trim(0);
    return figures();
  };
  round();
  const hummock_stats_t before = settled();
  for (int i = 0; i < 5; ++i) round();
  const hummock_stats_t after = settled();
  CHECK(about(after.live, before.live));
  CHECK(after.large_blocks == before.large_blocks);
  CHECK(after.mapped <= before.mapped + 32 * kMiB);
}

// Of the process, in bytes.
size_t resident() {
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  size_t total = 0, pages = 0;
  const int fields = fscanf(file, "%zu %zu", &total, &pages);
  fclose(file);
  return fields == 2 ? pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

TEST_CASE("many small heaps") {
  constexpr size_t kHeaps = 4000;
  std::vector<hummock_heap_t*> heaps(kHeaps);
  const size_t records = figures().metadata;
  const size_t before = resident();
  for (hummock_heap_t*& heap : heaps) REQUIRE((heap = hummock_heap_create()) != nullptr);
  CHECK(figures().metadata - records <= kHeaps * 2048);
  for (hummock_heap_t* heap : heaps) {
    void* block = hummock_heap_malloc(heap, 100);
    REQUIRE(block != nullptr);
    support::fill(block, 1, 100);
  }
  const bool exact = !HUMMOCK_TEST_EMULATED && !HUMMOCK_TEST_SANITIZED && !support::checked();
  if (exact && sysconf(_SC_PAGESIZE) == 4096) CHECK(resident() - before <= kHeaps * 6656);
  for (hummock_heap_t* heap : heaps) hummock_heap_destroy(heap);
}

TEST_CASE("a heap keeps one slab of a class where little was used, and gives the others back") {
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  void* first = hummock_heap_malloc(heap, 100);
  hummock_heap_free(heap, first);
  CHECK(figures(heap).slabs == 1);
  CHECK(hummock_heap_malloc(heap, 100) == first);
  std::vector<void*> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(hummock_heap_malloc(heap, 100));
  CHECK(figures(heap).slabs > 5);
  for (void* block : blocks) hummock_heap_free(heap, block);
  hummock_heap_free(heap, first);
  CHECK(figures(heap).slabs <= 1);
  hummock_heap_free(heap, hummock_heap_malloc(heap, 60000));
  CHECK(figures(heap).slabs <= 1);
  hummock_heap_destroy(heap);
}

TEST_CASE("a heap hands out what was freed before memory never touched") {
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(hummock_heap_malloc(heap, 5000));
  std::vector<void*> freed;
  for (size_t i = 0; i < blocks.size(); i += 4) freed.push_back(blocks[i]);
  for (void* block : freed) hummock_heap_free(heap, block);
  for (size_t i = 0; i < freed.size(); ++i) {
    void* block = hummock_heap_malloc(heap, 5000);
    CHECK(std::find(freed.begin(), freed.end(), block) != freed.end());
  }
  hummock_heap_destroy(heap);
}

TEST_CASE("several threads in one heap") {
  support::HangGuard guard(240);
  const hummock_stats_t before = figures();
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  constexpr size_t kThreads = 8;
  std::atomic<size_t> lost{0}, left{0};
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) {
    crew.emplace_back([&, t] {
      support::Random random(support::run_seed() + t);
      std::vector<void*> blocks;
      std::vector<size_t> sizes;
      for (size_t i = 0; i < support::scaled(30000, 500); ++i) {
        if (random.one_in(2) && !blocks.empty()) {
          const size_t at = random.below(blocks.size());
          lost += !support::intact(blocks[at], t, sizes[at]);
          random.one_in(2) ? hummock_free(blocks[at]) : hummock_heap_free(heap, blocks[at]);
          blocks[at] = blocks.back();
          sizes[at] = sizes.back();
          blocks.pop_back();
          sizes.pop_back();
        } else {
          sizes.push_back(random.size_up_to(100000));
          blocks.push_back(hummock_heap_malloc(heap, sizes.back()));
          support::fill(blocks.back(), t, sizes.back());
        }
      }
      for (size_t i = 0; i < blocks.size(); ++i) lost += !support::intact(blocks[i], t, sizes[i]);
      left += blocks.size();
    });
  }
  for (std::thread& thread : crew) thread.join();
  CHECK(lost == 0);
  CHECK(figures(heap).live_blocks == left);
  hummock_heap_destroy(heap);
  CHECK(about(figures().live, before.live));
}

TEST_CASE("a heap outlives the thread that made it") {
  hummock_heap_t* heap = nullptr;
  void* block = nullptr;
  std::thread([&] {
    heap = hummock_heap_create();
    block = hummock_heap_malloc(heap, 1000);
    support::fill(block, 3, 1000);
  }).join();
  REQUIRE(block != nullptr);
  CHECK(support::intact(block, 3, 1000));
  void* second = hummock_heap_malloc(heap, 1000);
  CHECK(second != nullptr);
  CHECK(second != block);
  std::thread([&] { hummock_heap_free(heap, block); }).join();
  CHECK(figures(heap).live_blocks == 1);
  std::thread([&] { hummock_heap_destroy(heap); }).join();
}

// Most of them stand in later slots of their slab.
TEST_CASE("blocks of several slots are freed by free, by any thread") {
  hummock_heap_t* heap = hummock_heap_create();
  std::vector<void*> blocks;
  for (size_t i = 0; i < 400; ++i) blocks.push_back(hummock_heap_malloc(heap, 8200 + i * 140));
  const auto free_each_second = [&blocks](size_t first) {
    hummock_free(hummock_malloc(1));  // a thread that has a heap of its own
    for (size_t i = first; i < blocks.size(); i += 2) hummock_free(blocks[i]);
  };
  free_each_second(0);
  std::thread(free_each_second, 1).join();
  CHECK(figures(heap).live_blocks == 0);
  hummock_heap_destroy(heap);
}

TEST_CASE("realloc keeps a block in its heap") {
  hummock_heap_t* heap = hummock_heap_create();
  void* block = hummock_heap_malloc(heap, 100);
  support::fill(block, 5, 100);
  for (size_t size : {size_t{5000}, size_t{200000}, size_t{40} * kMiB, size_t{100}}) {
    block = hummock_realloc(block, size);
    REQUIRE(block != nullptr);
    CHECK(support::intact(block, 5, 100));
    CHECK(figures(heap).live_blocks == 1);
    CHECK(figures(heap).live_bytes == hummock_usable_size(block));
  }
  block = hummock_heap_realloc(heap, block, 300);
  CHECK(figures(heap).live_blocks == 1);
  hummock_heap_destroy(heap);
}

TEST_CASE("the family in a heap") {
  hummock_heap_t* heap = hummock_heap_create();
  char* zero = static_cast<char*>(hummock_heap_calloc(heap, 300, 11));
  REQUIRE(zero != nullptr);
  CHECK(support::all_zero(zero, 0, 3300));
  errno = 0;
  CHECK(hummock_heap_calloc(heap, SIZE_MAX / 2, 3) == nullptr);
  CHECK(errno == ENOMEM);
  errno = 0;
  CHECK(hummock_heap_malloc(heap, size_t{PTRDIFF_MAX} + 1) == nullptr);
  CHECK(errno == ENOMEM);
  for (size_t alignment = 16; alignment <= 4 * kMiB; alignment *= 4) {
    void* block = hummock_heap_memalign(heap, alignment, 77);
    REQUIRE(block != nullptr);
    CHECK(support::is_aligned(block, alignment));
  }
  void* empty = hummock_heap_malloc(heap, 0);
  CHECK(empty != nullptr);
  CHECK(hummock_heap_malloc(heap, 0) != empty);
  hummock_heap_free(heap, nullptr);
  CHECK(hummock_heap_stats(heap, nullptr) == EINVAL);
  void* grown = hummock_heap_realloc(heap, nullptr, 50);
  CHECK(grown != nullptr);
  hummock_heap_destroy(heap);
}

TEST_CASE("a null heap is the thread's own") {
  void* block = hummock_heap_malloc(nullptr, 100);
  REQUIRE(block != nullptr);
  block = hummock_heap_realloc(nullptr, block, 1000);
  REQUIRE(block != nullptr);
  hummock_heap_free(nullptr, block);
  block = hummock_heap_calloc(nullptr, 10, 10);
  REQUIRE(block != nullptr);
  CHECK(support::all_zero(block, 0, 100));
  hummock_free(block);
  block = hummock_heap_memalign(nullptr, 4096, 10);
  CHECK(support::is_aligned(block, 4096));
  hummock_free(block);
}

TEST_CASE("many heaps come and go without leaving memory") {
  support::HangGuard guard(120);
  const auto round = [](size_t count) {
    std::vector<hummock_heap_t*> heaps;
    for (size_t i = 0; i < count; ++i) {
      heaps.push_back(hummock_heap_create());
      REQUIRE(heaps.back() != nullptr);
      for (size_t size : {20, 200, 2000}) REQUIRE(hummock_heap_malloc(heaps.back(), size) != nullptr);
    }
    for (hummock_heap_t* heap : heaps) hummock_heap_destroy(heap);
  };
  round(100);
  const hummock_stats_t before = figures();
  for (size_t i = 0; i < support::scaled(50, 3); ++i) round(100);
  const hummock_stats_t after = figures();
  CHECK(about(after.live, before.live));
  CHECK(after.mapped <= before.mapped + 32 * kMiB);
  CHECK(after.metadata <= before.metadata + 4 * kMiB);
}

TEST_CASE("the child of a fork has its copy of a heap") {
  hummock_heap_t* heap = hummock_heap_create();
  void* block = hummock_heap_malloc(heap, 500);
  support::fill(block, 9, 500);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(600);
    bool held = support::intact(block, 9, 500);
    for (size_t i = 0; i < 1000; ++i) held &= hummock_heap_malloc(heap, i) != nullptr;
    hummock_heap_free(heap, block);
    hummock_heap_destroy(heap);
    _exit(held ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(support::intact(block, 9, 500));
  hummock_heap_destroy(heap);
}
