// Eight threads in each thread mode, also under ThreadSanitizer.
#include <string.h>

#include <atomic>
#include <thread>
#include <vector>

#include "space_support.h"
#include "support/capture.h"

namespace {

using support::Random;
using support::Space;
using support::space_of;

constexpr int kThreads = 8;

struct Block {
  void* at = nullptr;
  size_t size = 0;
  uint64_t tag = 0;
};

// Each thread allocates, checks, frees, and passes blocks on by a slot all share.
void trade(hummock_space_t* space, std::atomic<Block*>* slots, uint64_t seed, size_t rounds,
           std::atomic<int>* broken) {
  Random random(seed);
  std::vector<Block> mine;
  for (size_t i = 0; i < rounds; ++i) {
    const size_t dice = random.below(10);
    if (dice < 5 && mine.size() < 200) {
      Block block;
      block.size = random.size_up_to(3000);
      block.tag = random.next();
      block.at =
          dice == 0 ? hummock_space_memalign(space, 64, block.size) : hummock_space_malloc(space, block.size);
      if (block.at == nullptr) continue;
      support::fill(block.at, block.tag, block.size);
      mine.push_back(block);
    } else if (!mine.empty() && dice < 8) {
      const size_t at = random.below(mine.size());
      if (!support::intact(mine[at].at, mine[at].tag, mine[at].size)) ++*broken;
      hummock_space_free(space, mine[at].at);
      mine[at] = mine.back();
      mine.pop_back();
    } else if (!mine.empty()) {
      Block* gift = new Block(mine.back());
      mine.pop_back();
      Block* got = slots[random.below(4)].exchange(gift);
      if (got != nullptr) mine.push_back(*got);
      delete got;
    }
  }
  for (const Block& block : mine) {
    if (!support::intact(block.at, block.tag, block.size)) ++*broken;
    hummock_space_free(space, block.at);
  }
}

void run(uint32_t mode, uint32_t policy, uint32_t cache, size_t rounds) {
  hummock_space_options_t options = space_of(size_t{16} << 20, mode, policy);
  options.cache_blocks = cache;
  Space space(options);
  std::atomic<Block*> slots[4] = {};
  std::atomic<int> broken = 0;
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (++ready; ready < kThreads;) std::this_thread::yield();
      trade(space, slots, support::run_seed() + static_cast<uint64_t>(i), rounds, &broken);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : slots) {
    Block* left = slot.load();
    if (left != nullptr) hummock_space_free(space, left->at);
    delete left;
  }
  CHECK(broken == 0);
  hummock_space_flush(space);
  CHECK(support::is_sound(space));
  const hummock_space_stats_t stats = support::figures(space);
  CHECK(stats.cache_free == 0);  // threads that ended gave theirs back
  CHECK(stats.used == 0);
  CHECK(stats.failures == 0);
}

}  // namespace

// Of many threads on few processors only the one whose turn it is gets on: the others must let it run.
TEST_CASE("spin") {
  support::HangGuard guard(850);
  run(HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_DENSE, 0, support::scaled(10000, 400));
  run(HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_PROVEN, 0, support::scaled(10000, 400));
}

TEST_CASE("spin with caches") {
  support::HangGuard guard(850);
  run(HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_DENSE, 64, support::scaled(20000, 800));
}

TEST_CASE("priority-inheriting") {
  support::HangGuard guard(850);
  run(HUMMOCK_SPACE_INHERIT, HUMMOCK_SPACE_DENSE, 0, support::scaled(40000, 1000));
  run(HUMMOCK_SPACE_INHERIT, HUMMOCK_SPACE_PROVEN, 0, support::scaled(40000, 1000));
  run(HUMMOCK_SPACE_INHERIT, HUMMOCK_SPACE_DENSE, 16, support::scaled(40000, 1000));
}

namespace {

void allocate_for_others(uint32_t cache) {
  hummock_space_options_t options = space_of(size_t{16} << 20);
  options.cache_blocks = cache;
  Space space(options);
  constexpr size_t kPlaces = 64;
  static std::atomic<void*> places[kThreads][kPlaces];
  std::atomic<bool> done = false;
  std::atomic<int> broken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      errno = 0;
      if (hummock_space_malloc(space, 8) != nullptr || errno != EPERM) ++broken;
      for (bool last = false; !last;) {
        last = done;
        for (auto& place : places[i]) {
          if (void* block = place.exchange(nullptr)) {
            if (!support::intact(block, 7, 100)) ++broken;
            hummock_space_free(space, block);
          }
        }
        std::this_thread::yield();
      }
    });
  }
  size_t refused = 0;
  support::Random random(support::run_seed());
  for (size_t i = 0; i < support::scaled(200000, 4000); ++i) {
    void* block = hummock_space_malloc(space, 100);
    refused += block == nullptr;
    if (block == nullptr) continue;
    support::fill(block, 7, 100);
    void* before = places[random.below(kThreads)][random.below(kPlaces)].exchange(block);
    if (before != nullptr) hummock_space_free(space, before);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(broken == 0);
  CHECK(refused == 0);
  // Two of the others' frees come back with each call.
  for (int i = 0; i < kThreads * static_cast<int>(kPlaces); ++i) {
    hummock_space_free(space, hummock_space_malloc(space, 1));
  }
  hummock_space_flush(space);
  CHECK(support::figures(space).live_blocks == 0);
  CHECK(support::is_sound(space));
}

}  // namespace

TEST_CASE("an owner allocates, others free") {
  support::HangGuard guard(850);
  allocate_for_others(0);
  allocate_for_others(64);
}

TEST_CASE("what others freed leaves no trace in later blocks") {
  Space space(space_of(size_t{1} << 20));
  for (int i = 0; i < 20; ++i) {
    void* before = hummock_space_malloc(space, 40);
    void* block = hummock_space_malloc(space, 40);
    hummock_space_free(space, before);  // so that the block joins it, and its payload stays as it is
    std::thread([&] { hummock_space_free(space, block); }).join();
    hummock_space_free(space, hummock_space_malloc(space, 500));
  }
  CHECK(support::is_sound(space));
}

TEST_CASE("ownership passes on") {
  Space space(space_of(size_t{1} << 20));
  std::thread([&] {
    CHECK(hummock_space_own(space) == 0);
    void* block = hummock_space_malloc(space, 100);
    CHECK(block != nullptr);
    hummock_space_free(space, block);
  }).join();
  CHECK(hummock_space_malloc(space, 1) == nullptr);
  CHECK(hummock_space_own(space) == 0);
  CHECK(support::figures(space).live_blocks == 0);
}

TEST_CASE("a thread's cache goes back at its end, or when it says so") {
  hummock_space_options_t options = space_of(size_t{1} << 20, HUMMOCK_SPACE_INHERIT);
  options.cache_blocks = 32;
  Space space(options);
  std::thread([&] {
    hummock_space_free(space, hummock_space_malloc(space, 100));
    CHECK(support::figures(space).cache_free_blocks > 0);
    hummock_space_flush(space);
    CHECK(support::figures(space).cache_free_blocks == 0);
    hummock_space_free(space, hummock_space_malloc(space, 100));
  }).join();
  CHECK(support::figures(space).cache_free_blocks == 0);
  CHECK(support::figures(space).live_blocks == 0);
}

namespace {

bool aborts(void (*act)(hummock_space_t*)) {
  hummock_space_options_t options = space_of(size_t{1} << 20, HUMMOCK_SPACE_SPIN);
  options.cache_blocks = 32;
  return support::ending_of([&] { act(hummock_space_create(&options, nullptr)); }).aborted;
}

// As if both had looked before either freed it, and both had put it into their caches.
void free_in_two_threads(hummock_space_t* space) {
  char* block = static_cast<char*>(hummock_space_malloc(space, 1000));
  std::atomic<int> stage{0};
  std::thread other([&] {
    hummock_space_free(space, block);
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    hummock_space_malloc(space, 1000);
  });
  while (stage != 1) std::this_thread::yield();
  memset(block, 0, 16);
  hummock_space_free(space, block);
  hummock_space_malloc(space, 1000);
  stage = 2;
  other.join();
}

}  // namespace

TEST_CASE("a block that two threads freed at once does not come out of both caches") {
  CHECK(aborts(free_in_two_threads));
}

TEST_CASE("a block that rests in a cache is no live block") {
  CHECK(aborts([](hummock_space_t* space) {
    void* block = hummock_space_malloc(space, 1000);
    hummock_space_free(space, block);
    hummock_space_realloc(space, block, 900);
  }));
  CHECK(aborts([](hummock_space_t* space) {
    void* block = hummock_space_malloc(space, 64);
    hummock_space_free(space, block);
    hummock_space_usable_size(space, block);
  }));
}
