// Blocks that a thread freed lately: in which order they come back, where they go when they are too many,
// and that no block of them is handed out twice, whatever is freed twice.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <string.h>
#include <unistd.h>

#include <future>
#include <set>
#include <thread>
#include <vector>

#include "support/capture.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

std::vector<void*> take(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = hummock_malloc(size);
    REQUIRE(block != nullptr);
  }
  return blocks;
}

void give(const std::vector<void*>& blocks) {
  for (void* block : blocks) hummock_free(block);
}

// Takes blocks until one comes twice; by then the process must have ended.
void take_until_twice(size_t size, std::set<void*> live) {
  for (int i = 0; i < 100000; ++i) {
    if (!live.insert(hummock_malloc(size)).second) {
      static const char kText[] = "handed out twice\n";
      (void)!write(2, kText, sizeof(kText) - 1);
      _exit(1);
    }
  }
}

}  // namespace

TEST_CASE("the block freed last comes back before blocks never used") {
  for (const size_t size : {24, 64, 500, 3000, 20000}) {
    CAPTURE(size);
    const std::vector<void*> blocks = take(40, size);
    give(blocks);
    std::set<void*> known(blocks.begin(), blocks.end());
    // What was at hand before may come first, but no more than that.
    size_t again = 0;
    const std::vector<void*> others = take(4000, size);
    for (size_t i = 0; i < others.size(); ++i) again += known.count(others[i]);
    CHECK(again == known.size());
    give(others);
  }
}

TEST_CASE("a block of another thread goes back to its slab") {
  for (const size_t size : {16, 64, 256, 2048}) {
    CAPTURE(size);
    void* block = hummock_malloc(size);
    std::thread([&] {
      hummock_free(hummock_malloc(size));
      hummock_free(block);
      const std::vector<void*> others = take(200, size);
      CHECK(std::set<void*>(others.begin(), others.end()).count(block) == 0);
      give(others);
    }).join();
  }
}

TEST_CASE("freed in any number and order, nothing is lost") {
  support::Random random(support::run_seed());
  const size_t before = support::figures().live;
  for (int round = 0; round < 30; ++round) {
    const size_t size = random.size_up_to(40000);
    const size_t count = 1 + random.below(200000000 / (size + 100000));
    std::vector<void*> blocks = take(count, size);
    for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
    give(blocks);
  }
  hummock_trim(0);
  CHECK(support::figures().live <= before + (1 << 20));
}

TEST_CASE("what a thread keeps of the blocks it freed is bounded, whatever their sizes") {
  const size_t at_rest = 64 << 10;
  const size_t budget = 8 << 20;
  const size_t before = support::figures().live;
  std::promise<void> freed, seen;
  std::thread thread([&] {
    for (size_t size = 16; size <= 65536; size += size < 256 ? 16 : size / 8) {
      give(take((size_t{1} << 20) / size, size));
      give(take(1, size));
    }
    freed.set_value();
    seen.get_future().wait();
  });
  freed.get_future().wait();
  // What rests in the caches of another thread counts as live.
  CHECK(support::figures().live <= before + at_rest + budget);
  seen.set_value();
  thread.join();
}

TEST_CASE("what an aligned block, or one that grew, has room for is of its own class") {
  std::thread([] {
    const size_t size = 8192;
    const size_t next = hummock_good_size(size + 1);
    give(take(3, next));
    void* aligned = hummock_aligned_alloc(size, size);
    CHECK(reinterpret_cast<uintptr_t>(aligned) % size == 0);
    hummock_free(aligned);
    // Twice a quarter more would count as another size.
    give(take(3, hummock_good_size(36864 + 1)));
    void* grown = hummock_realloc(hummock_malloc(27000), 29958);
    CHECK(hummock_usable_size(grown) <= 29958 + 29958 / 4);
    CHECK(hummock_realloc(grown, 29958) == grown);
    hummock_free(grown);
  }).join();
}

TEST_CASE("what is freed twice ends the process before it is handed out twice") {
  // With so many blocks freed between the two frees, the first stands among the recent ones, in a list
  // that was put aside, in the bin, or back in its slab.
  for (const size_t size : {16, 48, 64, 1000, 9000}) {
    for (const size_t between : {0, 1, 20, 300, 1500}) {
      CAPTURE(size);
      CAPTURE(between);
      const support::Ending ended = support::ending_of([&] {
        const std::vector<void*> blocks = take(between + 2, size);
        hummock_free(blocks[0]);
        for (size_t i = 1; i <= between; ++i) hummock_free(blocks[i]);
        hummock_free(blocks[0]);
        take_until_twice(size, {blocks.back()});
      });
      CHECK(ended.aborted);
      CHECK(support::contains(ended.said, "free"));
    }
  }
}

TEST_CASE("what stands in the bin and is freed again ends the process") {
  for (const size_t size : {16, 64, 1000}) {
    CAPTURE(size);
    const support::Ending ended = support::ending_of([&] {
      const std::vector<void*> blocks = take(128, size);
      give(blocks);
      void* first = hummock_malloc(size);
      for (size_t i = 30; i < 33; ++i) {
        if (blocks[i] != first) hummock_free(blocks[i]);
      }
      take_until_twice(size, {first});
    });
    CHECK(ended.aborted);
  }
}

TEST_CASE("an interior pointer that is freed ends the process") {
  for (const size_t size : {48, 64, 160, 1000, 9000}) {
    CAPTURE(size);
    const support::Ending ended = support::ending_of([&] {
      const std::vector<void*> blocks = take(10, size);
      hummock_free(static_cast<char*>(blocks[3]) + 16);
      take_until_twice(size, std::set<void*>(blocks.begin(), blocks.end()));
    });
    CHECK(ended.aborted);
    CAPTURE(ended.said);
    // Found when the list is looked through, or when the block goes back to its slab.
    CHECK((support::contains(ended.said, "into a block") || support::contains(ended.said, "not a block")));
  }
}

TEST_CASE("a thread that ends leaves nothing behind of what it kept at hand") {
  const size_t before = support::figures().committed;
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      for (const size_t size : {16, 64, 300, 2000, 20000}) give(take(300, size));
    }).join();
  }
  hummock_trim(0);
  CHECK(support::figures().committed <= before + (4 << 20));
}
