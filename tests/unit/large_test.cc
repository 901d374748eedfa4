// Blocks above the size classes: 64 KiB to 200 MiB, any alignment, growth and shrinking.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <limits.h>
#include <sched.h>

#include <thread>
#include <vector>

#include "os/thread.h"
#include "support/figures.h"
#include "support/support.h"

namespace {
constexpr size_t kKiB = 1024;
constexpr size_t kMiB = size_t{1} << 20;

size_t resident_pages() {
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  size_t total = 0, resident = 0;
  const int fields = fscanf(file, "%zu %zu", &total, &resident);
  fclose(file);
  return fields == 2 ? resident : 0;
}
size_t resident_bytes() {
  return resident_pages() * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}
}  // namespace

TEST_CASE("sizes from 64 KiB to 200 MiB") {
  support::HangGuard guard(120);
  for (size_t size = 60 * kKiB; size <= 200 * kMiB; size += size / 5) {
    for (size_t exact : {size, size + 1}) {
      CAPTURE(exact);
      void* block = hummock_malloc(exact);
      REQUIRE(block != nullptr);
      CHECK(support::is_aligned(block, 16));
      CHECK(hummock_usable_size(block) >= exact);
      support::fill(block, exact, exact);
      void* other = hummock_malloc(exact);
      REQUIRE(other != nullptr);
      support::fill(other, ~exact, exact);
      CHECK(support::intact(block, exact, exact));
      CHECK(support::intact(other, ~exact, exact));
      hummock_free(block);
      hummock_free(other);
    }
  }
}

// Where the kernel does not tell the processor (an emulator), threads have caches of their own: then only the
// first two checks hold.
TEST_CASE("threads on one processor hand a large block on") {
  cpu_set_t before, here;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&here);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &here);
  REQUIRE(sched_setaffinity(0, sizeof here, &here) == 0);  // threads inherit it
  hummock::os::find_processor();
  const bool known = hummock::os::processor(UINT_MAX) != UINT_MAX;
  if (known) CHECK(hummock::os::processor(UINT_MAX) == static_cast<unsigned>(sched_getcpu()));
  hummock_trim(0);  // the caches are empty, and may take spans
  void* first = nullptr;
  std::thread([&] { hummock_free(first = hummock_malloc(100 * kKiB)); }).join();
  REQUIRE(first != nullptr);
  void* second = nullptr;
  hummock_free(hummock_malloc(100 * kKiB));
  std::thread([&] {
    hummock_free(hummock_malloc(10));  // a thread's first call passes the caches
    second = hummock_malloc(100 * kKiB);
  }).join();
  if (known) CHECK(second == first);
  hummock_free(second);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("alignments up to 128 MiB, small and large sizes") {
  support::HangGuard guard(120);
  for (size_t alignment = 8; alignment <= 128 * kMiB; alignment *= 2) {
    for (size_t size : {size_t{1}, 100 * kKiB, size_t{1} * kMiB + 1, 40 * kMiB}) {
      CAPTURE(alignment);
      CAPTURE(size);
      void* block = hummock_memalign(alignment, size);
      REQUIRE(block != nullptr);
      CHECK(support::is_aligned(block, alignment));
      CHECK(hummock_usable_size(block) >= size);
      support::fill(block, alignment, size);
      CHECK(support::intact(block, alignment, size));
      block = hummock_realloc(block, size + size / 2 + 1);
      REQUIRE(block != nullptr);
      CHECK(support::intact(block, alignment, size));
      hummock_free(block);
      block = hummock_aligned_alloc(alignment, size);
      REQUIRE(block != nullptr);
      hummock_free_aligned_sized(block, alignment, size);
    }
  }
}

TEST_CASE("a block grows to 80 MiB step by step and keeps its contents") {
  support::HangGuard guard(120);
  for (size_t step : {size_t{4096} * 7 + 8, 300 * kKiB, 3 * kMiB}) {
    char* block = nullptr;
    size_t filled = 0;
    bool kept = true;
    for (size_t size = step; size <= 80 * kMiB; size += step) {
      block = static_cast<char*>(hummock_realloc(block, size));
      REQUIRE(block != nullptr);
      for (size_t at = filled; at + 8 <= size; at += 4096) {
        const uint64_t word = support::pattern_word(step, at);
        memcpy(block + at, &word, 8);
        filled = at + 4096;
      }
    }
    for (size_t at = 0; at < filled; at += 4096) {
      const uint64_t word = support::pattern_word(step, at);
      kept &= memcmp(block + at, &word, 8) == 0;
    }
    CHECK(kept);
    hummock_free(block);
  }
}

TEST_CASE("growth between neighbours does not touch them") {
  support::HangGuard guard(120);
  constexpr size_t kCount = 24;
  void* blocks[kCount];
  size_t sizes[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    sizes[i] = 70 * kKiB + i * 9000;
    blocks[i] = hummock_malloc(sizes[i]);
    REQUIRE(blocks[i] != nullptr);
    support::fill(blocks[i], i, sizes[i]);
  }
  support::Random random(support::run_seed());
  for (size_t round = 0; round < support::scaled(4000, 200); ++round) {
    const size_t i = random.below(kCount);
    const size_t size = random.between(60 * kKiB, random.one_in(20) ? 48 * kMiB : 1 * kMiB);
    blocks[i] = hummock_realloc(blocks[i], size);
    REQUIRE(blocks[i] != nullptr);
    REQUIRE(support::intact(blocks[i], i, sizes[i], std::min(sizes[i], size)));
    sizes[i] = size;
    support::fill(blocks[i], i, size);
    const size_t other = random.below(kCount);
    REQUIRE(support::intact(blocks[other], other, sizes[other]));
  }
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("shrinking keeps the contents and gives memory back") {
  support::HangGuard guard(120);
  const size_t before = resident_bytes();
  char* block = static_cast<char*>(hummock_malloc(160 * kMiB));
  REQUIRE(block != nullptr);
  memset(block, 'h', 160 * kMiB);
  if (before != 0 && !HUMMOCK_TEST_SANITIZED) CHECK(resident_bytes() >= before + 150 * kMiB);
  for (size_t size : {100 * kMiB, 20 * kMiB, 1 * kMiB, 100 * kKiB, size_t{5000}, size_t{10}}) {
    CAPTURE(size);
    block = static_cast<char*>(hummock_realloc(block, size));
    REQUIRE(block != nullptr);
    CHECK((block[0] == 'h' && memcmp(block, block + 1, size - 1) == 0));
    CHECK(hummock_usable_size(block) <= size + size / 4 + 65536);
  }
  hummock_trim(0);
  if (before != 0 && !HUMMOCK_TEST_SANITIZED && !support::checked()) {
    CHECK(resident_bytes() <= before + 24 * kMiB);
  }
  hummock_free(block);
}

TEST_CASE("large calloc is zero, also where memory was used before") {
  support::HangGuard guard(120);
  for (size_t round = 0; round < 4; ++round) {
    for (size_t size : {65 * kKiB, 1 * kMiB + 5, 15 * kMiB, 17 * kMiB, 70 * kMiB}) {
      char* block = static_cast<char*>(hummock_calloc(size, 1));
      REQUIRE(block != nullptr);
      CHECK(support::all_zero(block, 0, size));
      memset(block, 0xA5, size);
      hummock_free(block);
    }
  }
}

TEST_CASE("threads use large blocks at once") {
  support::HangGuard guard(240);
  std::vector<std::thread> crew;
  std::vector<size_t> lost(4);
  for (size_t t = 0; t < lost.size(); ++t) {
    crew.emplace_back([&, t] {
      support::Random random(support::run_seed() + t);
      void* blocks[16] = {};
      size_t sizes[16] = {};
      for (size_t round = 0; round < support::scaled(20000, 500); ++round) {
        const size_t i = random.below(16);
        if (blocks[i] != nullptr && !support::intact(blocks[i], t * 16 + i, sizes[i])) ++lost[t];
        hummock_free(blocks[i]);
        sizes[i] = random.between(33 * kKiB, random.one_in(50) ? 20 * kMiB : 2 * kMiB);
        blocks[i] = hummock_malloc(sizes[i]);
        if (blocks[i] == nullptr) ++lost[t], sizes[i] = 0;
        if (blocks[i] != nullptr) support::fill(blocks[i], t * 16 + i, sizes[i]);
      }
      for (void* block : blocks) hummock_free(block);
    });
  }
  for (std::thread& thread : crew) thread.join();
  for (size_t count : lost) CHECK(count == 0);
}
