// Executed instructions of malloc and free, counted one by one: the highest in any state must be no more
// than what docs/spaces.md publishes.
#include <vector>

#include "space_support.h"
#include "stepper.h"

namespace {

using support::Random;
using support::space_of;

constexpr int kMalloc = 0;
constexpr int kFree = 1;
constexpr int kEmptyMalloc = 2;
constexpr int kEmptyFree = 3;
constexpr int kUsable = 4;

// Called by pointers, as what is measured, so that their cost can be taken off.
__attribute__((noinline)) void* empty_malloc(hummock_space_t*, size_t) {
  asm volatile("");
  return nullptr;
}
__attribute__((noinline)) void empty_free(hummock_space_t*, void*) {
  asm volatile("");
}
void* (*volatile call_malloc)(hummock_space_t*, size_t) = hummock_space_malloc;
size_t (*volatile call_usable)(hummock_space_t*, const void*) = hummock_space_usable_size;
void (*volatile call_free)(hummock_space_t*, void*) = hummock_space_free;
void* (*volatile call_empty_malloc)(hummock_space_t*, size_t) = empty_malloc;
void (*volatile call_empty_free)(hummock_space_t*, void*) = empty_free;

// In the child. Counts those calls that it is told to.
class Driver {
 public:
  explicit Driver(hummock_space_t* space) : space_(space) {
    hummock_space_own(space);  // the child's thread; refused in other modes
    hummock_space_free(space, hummock_space_malloc(space, 1));
    void* p = nullptr;
    for (int i = 0; i < 4; ++i) {
      stepper::counted(kEmptyMalloc, [&] { p = call_empty_malloc(space_, 16); });
      stepper::counted(kEmptyFree, [&] { call_empty_free(space_, p); });
    }
  }

  void* take(size_t size, bool count) {
    void* p = nullptr;
    if (count) {
      stepper::counted(kMalloc, [&] { p = call_malloc(space_, size); });
    } else {
      p = call_malloc(space_, size);
    }
    return p;
  }
  void give(void* p, bool count) {
    if (p == nullptr) return;
    if (count) {
      stepper::counted(kUsable, [&] { size_ = call_usable(space_, p); });
      stepper::counted(kFree, [&] { call_free(space_, p); });
    } else {
      call_free(space_, p);
    }
  }

  // Every size of 16 bytes to the limit in steps of a quarter doubling, both ways round.
  void sequential(size_t most) {
    for (size_t size = 16; size <= most; size += size / 4 / 16 * 16 + 16) {
      if (size > 1024 && size % 3 != 0 && size < most / 2) size += 16;
      void* p = take(size, true);
      void* q = take(size, true);
      give(p, true);
      give(q, true);
    }
  }

  void churn(uint64_t seed, size_t live, size_t operations, size_t counted) {
    Random random(seed);
    std::vector<void*> blocks;
    for (size_t i = 0; i < live; ++i) blocks.push_back(take(random.size_up_to(2000), false));
    const size_t every = operations / counted + 1;
    for (size_t i = 0; i < operations; ++i) {
      void*& p = blocks[random.below(blocks.size())];
      give(p, i % every == 0);
      p = take(random.size_up_to(random.one_in(50) ? 400000 : 2000), i % every == 0);
    }
    for (void* p : blocks) give(p, false);
  }

  // Every other one of `count` blocks free, then a larger one; then the rest, each joining two neighbours.
  void alternating(size_t count, size_t counted) {
    std::vector<void*> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back(take(64, false));
    const size_t every = count / counted + 1;
    for (size_t i = 0; i < count; i += 2) give(blocks[i], i / 2 % every == 0);
    give(take(4096, true), true);
    for (size_t i = 0; i < 8; ++i) give(take(64, true), true);
    for (size_t i = 1; i < count; i += 2) give(blocks[i], i / 2 % every == 0);
  }

  // What costs most, put together on purpose: a free that joins two neighbours, each the last range of
  // its class and the last class of its level, into a class and level that had none; a malloc that finds
  // its own class's first range too short, nothing in its level, takes the last range of a level, and
  // leaves a rest in a level that had none.
  void adversarial(size_t before, size_t own, size_t behind) {
    void* a = take(before, false);
    void* p = take(own, false);
    void* b = take(behind, false);
    void* wall = take(16, false);
    give(a, false);
    give(b, false);
    give(p, true);
    void* q = take(before + own / 2, true);
    give(q, true);
    give(wall, true);
  }
  void adversarial_pairs() {
    for (size_t before = 24; before < 700000; before = before * 4 + 40) {
      for (size_t behind = 24; behind < 700000; behind = behind * 4 + 24) {
        for (const size_t own : {size_t{24}, before / 3 + behind}) adversarial(before, own, behind);
      }
    }
  }
  // The first range of a request's class is shorter than the request.
  void short_heads() {
    for (size_t size = 4096; size < 1000000; size = size * 5 / 2) {
      void* p = take(size + 16, false);
      void* wall = take(16, false);
      give(p, false);
      void* q = take(size + size / 128, true);
      give(q, true);
      give(wall, true);
    }
  }

  // While no long range is free, a malloc gives a block at rest to the pool: one that joins two neighbours.
  void waking() {
    const size_t most = support::figures(space_).largest_free;
    for (size_t size = 3000; size < 60000; size = size * 3 / 2) {
      void* filler = take(most - most / 9, false);
      void* before = take(70000 + size, false);
      void* p = take(size, false);
      void* behind = take(130000 + 3 * size, false);
      void* wall = take(16, false);
      give(before, false);
      give(behind, false);
      give(p, false);
      void* more = take(most / 9 - 500000, false);
      void* q = take(100, true);
      give(q, true);
      give(take(size + 2000, true), true);
      give(more, true);
      give(wall, true);
      give(filler, true);
    }
  }

  // What rests, between free neighbours, was freed while there was a long range; then there is none.
  void waking_late() {
    for (size_t size = 3000; size < 60000; size *= 2) {
      std::vector<void*> blocks;
      for (size_t i = 0; i < 12; ++i) {
        blocks.push_back(take(70000 + (size << i % 4), false));
        blocks.push_back(take(size + 700 * i, false));
      }
      void* wall = take(16, false);
      for (size_t i = 1; i < blocks.size(); i += 2) give(blocks[i], true);
      for (size_t i = 0; i < blocks.size(); i += 2) give(blocks[i], true);
      hummock_space_stats_t stats = support::figures(space_);
      void* filler = take(stats.largest_free - stats.largest_free / 9, false);
      std::vector<void*> more;
      // The first ones wake what rests: these are counted, and few of the others.
      for (size_t i = 0; i < 200; ++i)
        more.push_back(take(i % 2 == 0 ? 16 + 8 * i : size * 2 + 900 * i, i < 16 || i % 25 == 0));
      for (size_t i = 0; i < 200; ++i) give(more[i], i < 16 || i % 25 == 0);
      give(wall, true);
      give(filler, true);
    }
  }

  // Long blocks freed one behind the other, between free neighbours; then more is wanted, which ends what an
  // owner's cache makes of them. And the same up to where nothing was ever taken, and back from there.
  void runs() {
    for (size_t size = 70000; size < 900000; size *= 2) {
      void* before = take(size / 2 + 70000, false);
      void* run[5];
      for (void*& p : run) p = take(size, true);
      void* behind = take(size + 90000, false);
      void* apart = take(size + 70000, false);
      void* wall = take(16, false);
      give(behind, false);
      give(before, false);
      for (void* p : run) give(p, true);
      give(apart, true);
      void* q = take(size / 3, true);
      give(q, true);
      give(take(100, true), true);
      void* last[4];
      for (void*& p : last) p = take(3 * size, true);
      give(last[0], false);
      give(last[2], true);
      give(last[3], true);
      give(last[1], true);
      for (void*& p : last) p = take(2 * size, true);
      for (void* p : last) give(p, true);
      give(wall, true);
    }
  }

 private:
  hummock_space_t* space_;
  size_t size_ = 0;
};

struct Published {
  uint32_t threads, policy;
  uint64_t malloc, free;
  uint32_t cache = 0, largest = 0;
};
constexpr uint64_t kPublishedUsable = 50;

// As docs/spaces.md says, on x86-64. Elsewhere instructions are others.
constexpr Published kPublished[] = {{HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_DENSE, 150, 120},
                                    {HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_PROVEN, 100, 60},
                                    {HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_DENSE, 160, 135},
                                    {HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_PROVEN, 110, 70},
                                    {HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_DENSE, 360, 160, 1024, 0},
                                    {HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_DENSE, 360, 160, 1024, 64 << 10}};

template <class Work>
void check(const Published& published, size_t bytes, Work work) {
  hummock_space_options_t options = space_of(bytes, published.threads, published.policy);
  options.cache_blocks = published.cache;
  options.cache_largest = published.largest;
  support::Space space(options);
  stepper::Counts counts;
  const int status = stepper::run([&] { work(space); }, &counts);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  REQUIRE(counts.calls[kMalloc] > 0);
  REQUIRE(counts.calls[kFree] > 0);
  // The empty functions' own return stays counted.
  const uint64_t most_malloc = counts.most[kMalloc] - counts.most[kEmptyMalloc] + 1;
  const uint64_t most_free = counts.most[kFree] - counts.most[kEmptyFree] + 1;
  const uint64_t most_usable = counts.most[kUsable] - counts.most[kEmptyMalloc] + 1;
  MESSAGE("threads ", published.threads, " policy ", published.policy, " cache ", published.cache,
          ": malloc ", most_malloc, " of ", counts.calls[kMalloc], " calls, free ", most_free, " of ",
          counts.calls[kFree], ", usable_size ", most_usable);
  CHECK(most_usable <= kPublishedUsable);
  CHECK(most_malloc > 20);
  CHECK(most_malloc <= published.malloc);
  CHECK(most_free > 20);
  CHECK(most_free <= published.free);
}

constexpr size_t kMiB = size_t{1} << 20;

}  // namespace

TEST_CASE("every size, one after the other") {
  for (const Published& published : kPublished) {
    check(published, 1024 * kMiB, [](hummock_space_t* space) { Driver(space).sequential(48 * kMiB); });
  }
}

TEST_CASE("churn, a thousand to a million live blocks") {
  for (const Published& published : kPublished) {
    for (const size_t live : {1000, 30000, 1000000}) {
      check(published, 1024 * kMiB, [=](hummock_space_t* space) {
        Driver(space).churn(support::run_seed(), live, live + 20000, live == 30000 ? 40 : 80);
      });
    }
  }
}

TEST_CASE("every other block free, a thousand to a million") {
  for (const Published& published : kPublished) {
    for (const size_t count : {1000, 30000, 1000000}) {
      check(published, 512 * kMiB, [=](hummock_space_t* space) { Driver(space).alternating(count, 50); });
    }
  }
}

TEST_CASE("states made to cost most") {
  for (const Published& published : kPublished) {
    check(published, 64 * kMiB, [&](hummock_space_t* space) {
      Driver driver(space);
      driver.adversarial_pairs();
      driver.short_heads();
      driver.waking();
      if (published.cache != 0) driver.waking_late();
    });
  }
}

TEST_CASE("long blocks, freed in their order and in others") {
  for (const Published& published : kPublished) {
    if (published.cache == 0) continue;
    check(published, 1024 * kMiB, [](hummock_space_t* space) { Driver(space).runs(); });
    check(published, 160 * kMiB, [](hummock_space_t* space) { Driver(space).runs(); });
  }
}

TEST_CASE("refusals, within a bound of their own") {
  const Published refusal = {HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_DENSE, 250, 120};
  check(refusal, kMiB, [](hummock_space_t* space) {
    Driver driver(space);
    void* p = driver.take(500000, false);
    void* q = driver.take(500000, false);
    for (int i = 0; i < 4; ++i) driver.take(100000, true);
    driver.take(SIZE_MAX - 5, true);
    driver.give(p, true);
    driver.give(q, true);
  });
}
