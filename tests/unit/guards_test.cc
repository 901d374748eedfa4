// Guarded blocks: as many as the option says, and blocks like any other to who does nothing wrong.
#include <doctest/doctest.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "hummock/hummock.h"
#include "hummock/observe.h"
#include "modes/guards.h"
#include "pages/pages.h"
#include "support/refusing.h"
#include "support/support.h"

using namespace hummock;
using namespace support::refusing;

namespace {

struct Guarding {
  explicit Guarding(const char* bytes) { REQUIRE(hummock_option_set("guards", bytes) == 0); }
  ~Guarding() { CHECK(hummock_option_set("guards", "off") == 0); }
};

bool is_guarded(const void* p) {
  const SlabHeader* header = pages::find_header(p);
  return header != nullptr && relaxed(header->kind) == Kind::guarded;
}

size_t count_guarded() {
  size_t count = 0;
  modes::guards::walk(
      {[](void* context, void*, size_t) { return ++*static_cast<size_t*>(context), 1; }, &count});
  return count;
}

bool is_all(const unsigned char* bytes, unsigned char value, size_t count) {
  return std::all_of(bytes, bytes + count, [value](unsigned char byte) { return byte == value; });
}

// Of so many blocks of the size, freed at once.
size_t guarded_of(size_t blocks, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < blocks; ++i) {
    void* block = hummock_malloc(size);
    REQUIRE(block != nullptr);
    count += is_guarded(block);
    hummock_free(block);
  }
  return count;
}

}  // namespace

TEST_CASE("as many blocks are guarded as the mean says") {
  const Guarding guarding("10000");
  for (const size_t size : {16, 100, 1000, 20000}) {
    CAPTURE(size);
    const double chance = 1 - std::exp(-static_cast<double>(size) / 10000);
    const size_t blocks = static_cast<size_t>(4000 / chance);
    CHECK(static_cast<double>(guarded_of(blocks, size)) == doctest::Approx(4000).epsilon(0.1));
  }
  CHECK(guarded_of(1000, 70000) == 0);
}

TEST_CASE("off: none, and those there are stay guarded until they are freed") {
  std::vector<void*> blocks;
  {
    const Guarding guarding("100");
    for (int i = 0; i < 100; ++i) blocks.push_back(hummock_malloc(100));
  }
  CHECK(count_guarded() > 20);
  CHECK(guarded_of(10000, 1000) == 0);
  for (void* block : blocks) hummock_free(block);
  CHECK(count_guarded() == 0);
}

TEST_CASE("a guarded block is a block") {
  const Guarding guarding("2");
  support::Random random(support::run_seed());
  for (int i = 0; i < 5000; ++i) {
    const size_t size = random.size_up_to(70000);
    auto* block = static_cast<unsigned char*>(hummock_calloc(1, size));
    REQUIRE(block != nullptr);
    const size_t room = hummock_usable_size(block);
    REQUIRE(room >= size);
    REQUIRE(is_all(block, 0, size));
    memset(block, 0xa5, room);
    CHECK(reinterpret_cast<uintptr_t>(block) % 16 == 0);
    CHECK(heap::owns(block));
    CHECK(hummock_slab_utilisation(block) >= 0);
    const size_t other = random.size_up_to(70000) + 1;
    auto* moved = static_cast<unsigned char*>(hummock_realloc(block, other));
    REQUIRE(moved != nullptr);
    REQUIRE(is_all(moved, 0xa5, std::min(size, other)));
    hummock_free_sized(moved, other);
  }
  CHECK(count_guarded() == 0);
}

TEST_CASE("alignment") {
  const Guarding guarding("2");
  for (size_t align = 1; align <= 65536; align *= 2) {
    for (size_t size = 1; size < 60000; size = size * 3 + 1) {
      void* block = hummock_aligned_alloc(align, size);
      REQUIRE(block != nullptr);
      CHECK(reinterpret_cast<uintptr_t>(block) % align == 0);
      memset(block, 1, size);
      hummock_free_aligned_sized(block, align, size);
    }
  }
}

TEST_CASE("a size that malloc would have rounded to is a size to free with") {
  const Guarding guarding("2");
  for (size_t size = 1; size < 5000; size += 7)
    hummock_free_sized(hummock_malloc(size), hummock_good_size(size));
}

TEST_CASE("more than there are slots, and the memory is counted") {
  const size_t before = pages::in_use_bytes();
  std::vector<void*> blocks;
  {
    const Guarding guarding("2");
    for (int i = 0; i < 10000; ++i) {
      blocks.push_back(hummock_malloc(1000));
      REQUIRE(blocks.back() != nullptr);
      memset(blocks.back(), i, 1000);
    }
    CHECK(!is_guarded(blocks.back()));
  }
  const size_t count = count_guarded();
  const int most = sizeof(void*) == 8 ? 4000 : 500;
  CHECK(count > (os::page_size() < kSlotSize ? most : most / 2));  // beside its page a block has none left
  CHECK(pages::in_use_bytes() >= before + count * 1000);
  for (void* block : blocks) hummock_free(block);
  CHECK(count_guarded() == 0);
  CHECK(pages::in_use_bytes() < before + (2 << 20));
}

TEST_CASE("figures: live is what a walk finds") {
  const auto figures = [] {
    hummock_stats_t stats = {};
    stats.size = sizeof stats;
    hummock_stats(&stats);
    return stats;
  };
  const auto add = [](void* context, void*, size_t size) {
    return *static_cast<size_t*>(context) += size, 1;
  };
  size_t before = 0, after = 0;
  CHECK(hummock_heap_walk(nullptr, add, &before) == 0);
  const hummock_stats_t then = figures();
  std::vector<void*> blocks;
  {
    const Guarding guarding("100");
    for (int i = 0; i < 1000; ++i) blocks.push_back(hummock_malloc(200));
  }
  CHECK(hummock_heap_walk(nullptr, add, &after) == 0);
  const hummock_stats_t now = figures();
  CHECK(count_guarded() > 500);
  CHECK(now.live - then.live == after - before);
  CHECK(now.large_blocks - then.large_blocks == count_guarded());
  for (void* block : blocks) hummock_free(block);
  CHECK(figures().large_blocks == then.large_blocks);
}

TEST_CASE("the system has no mapping left: no guard, and nothing is lost") {
  const Guarding guarding("2");
  for (const unsigned calls : {kMap, kUnmap, kAdvise, kAll}) {
    support::Random random(support::run_seed());
    for (int i = 0; i < 300; ++i) {
      const Refusing refusing(calls, random.below(3), random.below(3));
      const size_t size = random.size_up_to(20000) + 1;
      auto* block = static_cast<unsigned char*>(hummock_malloc(size));
      if (block == nullptr) continue;
      memset(block, 0xa5, size);
      REQUIRE(is_all(block, 0xa5, size));
      hummock_free(block);
    }
  }
  CHECK(count_guarded() == 0);
  CHECK(guarded_of(100, 1000) > 50);
}

TEST_CASE("every thread's, freed by others, beside walks and forks") {
  const Guarding guarding("500");
  constexpr size_t kShelf = 64;
  static std::atomic<void*> shelf[kShelf];
  std::atomic<int> left{4};
  std::vector<std::thread> threads;
  for (uint64_t self = 0; self < 4; ++self) {
    threads.emplace_back([&left, self] {
      support::Random random(support::run_seed() + self);
      for (int i = 0; i < 20000; ++i) {
        const size_t size = random.size_up_to(5000) + 8;
        void* block = hummock_malloc(size);
        memset(block, static_cast<int>(i), size);
        hummock_free(shelf[random.below(kShelf)].exchange(block, std::memory_order_acq_rel));
      }
      left.fetch_sub(1, std::memory_order_acq_rel);
    });
  }
  while (left.load(std::memory_order_acquire) != 0) {
    count_guarded();
    if (HUMMOCK_TEST_SANITIZED) continue;
    const pid_t child = fork();
    if (child == 0) {
      for (auto& place : shelf) hummock_free(place.exchange(nullptr));
      for (int i = 0; i < 1000; ++i) hummock_free(hummock_malloc(1000));
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& place : shelf) hummock_free(place.exchange(nullptr));
  CHECK(count_guarded() == 0);
}
