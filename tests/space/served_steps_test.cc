// Executed instructions of malloc and free where they are served from a space: no more than docs/spaces.md
// publishes, for calls that the thread's cache serves and for those that go to the space.
#include <vector>

#include "space_support.h"
#include "stepper.h"

extern "C" {
extern const char* hummock_conf;
const char* hummock_conf = "space_initial:256M";
}

namespace {

using support::Random;

constexpr int kMalloc = 0;
constexpr int kFree = 1;
constexpr int kEmpty = 2;

// As docs/spaces.md says, on x86-64.
constexpr uint64_t kMallocAtHand = 130;
constexpr uint64_t kFreeAtHand = 140;
constexpr uint64_t kMostMalloc = 3000;
constexpr uint64_t kMostFree = 3000;

void* (*volatile call_malloc)(size_t) = hummock_malloc;
void (*volatile call_free)(void*) = hummock_free;

void* take(size_t size, bool count = true) {
  void* p = nullptr;
  if (!count) return call_malloc(size);
  stepper::counted(kMalloc, [&] { p = call_malloc(size); });
  return p;
}
void give(void* p, bool count = true) {
  if (!count) return call_free(p);
  stepper::counted(kFree, [&] { call_free(p); });
}

struct Most {
  uint64_t malloc, free, malloc_calls, free_calls;
};
template <class Work>
Most most_of(Work work) {
  hummock_free(hummock_malloc(1));
  REQUIRE(hummock_space_of_process(HUMMOCK_SPACE_EXTERNAL) != nullptr);
  stepper::Counts counts;
  const int status = stepper::run(
      [&] {
        give(take(100, false), false);
        for (int i = 0; i < 4; ++i) stepper::counted(kEmpty, [] { asm volatile(""); });
        work();
      },
      &counts);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  const uint64_t own = counts.most[kEmpty];
  const Most most = {counts.most[kMalloc] - own, counts.most[kFree] - own, counts.calls[kMalloc],
                     counts.calls[kFree]};
  MESSAGE("malloc ", most.malloc, " of ", most.malloc_calls, " calls, free ", most.free, " of ",
          most.free_calls);
  CHECK(most.malloc_calls > 50);
  CHECK(most.free_calls > 50);
  CHECK(most.malloc > 20);
  CHECK(most.free > 20);
  return most;
}

}  // namespace

TEST_CASE("what is at hand") {
  const Most most = most_of([] {
    for (size_t size = 0; size <= 1024; size += 8) {
      give(take(size, false), false);
      give(take(size));
    }
  });
  CHECK(most.malloc <= kMallocAtHand);
  CHECK(most.free <= kFreeAtHand);
}

// Each malloc from a cache that is empty finds the ranges of a churned space, and each free of a block from a
// full one joins neighbours.
TEST_CASE("what goes to the space, one by one and by the batch") {
  const Most most = most_of([] {
    Random random(support::run_seed());
    std::vector<void*> blocks(60000);
    for (void*& p : blocks) p = take(random.size_up_to(2000), false);
    for (size_t i = 0; i < 120000; ++i) {
      void*& p = blocks[random.below(blocks.size())];
      give(p, i % 800 == 0);
      p = take(random.size_up_to(random.one_in(50) ? 400000 : 2000), i % 800 == 0);
    }
    for (size_t i = 0; i < blocks.size(); i += 2) give(blocks[i], i % 600 == 0);
    std::vector<void*> more;
    for (size_t i = 0; i < 300; ++i) more.push_back(take(i % 3 * 16 + 8));
    for (size_t size = 16; size < 1024; size += 16) {
      for (int k = 0; k < 40; ++k) more.push_back(take(size, k < 3));
    }
    for (size_t i = 0; i < more.size(); ++i) give(more[i], i % 8 == 0 || i < 300);
    for (size_t i = 1; i < blocks.size(); i += 2) give(blocks[i], i % 601 == 0);
  });
  CHECK(most.malloc <= kMostMalloc);
  CHECK(most.free <= kMostFree);
}
