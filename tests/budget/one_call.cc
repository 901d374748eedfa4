// The most that one call does beside its own work: executed instructions, counted by stepping, and system
// calls, whatever the heap looks like. Nothing here asserts time; the clock is ours.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "os/os.h"
#include "space/stepper.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr uint64_t kMostInstructions = 20000;
constexpr uint64_t kMostCalls = 4;

uint64_t clock_ms = 3'600'000;

// What a child counts, and its parent reads.
struct Seen {
  uint64_t calls;  // to the system, of the call under way
  uint64_t unmaps;
  uint64_t most_calls;
  uint64_t dirty;  // in the end
};
Seen* seen;

const hummock::os::Calls real = hummock::os::calls;
void* map(void* hint, size_t size, int protection, int flags) {
  return ++seen->calls, real.map(hint, size, protection, flags);
}
int unmap(void* address, size_t size) {
  return ++seen->calls, ++seen->unmaps, real.unmap(address, size);
}
int advise(void* address, size_t size, int advice) {
  return ++seen->calls, real.advise(address, size, advice);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return ++seen->calls, real.remap(address, old_size, new_size, flags, target);
}

template <class Call>
void one_call(Call call) {
  seen->calls = 0;
  stepper::counted(0, call);
  if (seen->calls > seen->most_calls) seen->most_calls = seen->calls;
}
void* take(size_t size, size_t align = 16) {
  void* p = nullptr;
  one_call([&] { p = hummock_memalign(align, size); });
  if (p == nullptr) _exit(3);
  return p;
}
void give(void* p) {
  one_call([&] { hummock_free(p); });
}

void* get(size_t size) {
  void* p = hummock_malloc(size);
  if (p == nullptr) _exit(3);
  return p;
}

// Blocks of two slots and of sizes up to 4 MiB, `mib` in all, none of which is touched.
std::vector<void*> fill(size_t mib, support::Random& random) {
  std::vector<void*> blocks;
  for (size_t left = mib * kMiB; left > 4 * kMiB;) {
    const size_t size = random.one_in(4) ? random.between(70000, 4 * kMiB) : 70000;
    blocks.push_back(get(size));
    left -= size;
  }
  return blocks;
}

template <class Work>
stepper::Counts stepped(Work work) {
  seen = static_cast<Seen*>(
      mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(seen != MAP_FAILED);
  hummock_free(hummock_malloc(1));
  stepper::Counts counts;
  const int status = stepper::run(
      [&] {
        hummock::os::calls = {map, unmap, advise, remap};
        work();
        seen->dirty = support::figures().dirty;
      },
      &counts);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return counts;
}

template <class Work>
void hold(Work work) {
  const stepper::Counts counts = stepped(work);
  MESSAGE("calls measured: " << counts.calls[0] << ", most instructions: " << counts.most[0]
                             << ", most system calls: " << seen->most_calls);
  CHECK(counts.calls[0] > 100);
  CHECK(counts.most[0] <= kMostInstructions);
  CHECK(seen->most_calls <= kMostCalls);
}

int read_clock(clockid_t, timespec* now) {
  now->tv_sec = static_cast<time_t>(clock_ms / 1000);
  now->tv_nsec = static_cast<long>(clock_ms % 1000 * 1'000'000);
  return 0;
}
const bool clock_is_ours = (hummock::os::read_clock = read_clock, true);

}  // namespace

TEST_CASE("a third of a large heap was freed and is due: no call gives it all back, many calls do") {
  support::HangGuard guard(1200);
  hold([] {
    support::Random random(1);
    std::vector<void*> blocks = fill(8192, random);
    for (void*& block : blocks) {
      if (random.below(10) >= 3) continue;
      hummock_free(block);
      block = nullptr;
    }
    const uint64_t dirty = support::figures().dirty;
    if (dirty < 512 * kMiB) _exit(4);
    clock_ms += 10'000;
    for (int i = 0; i < 200; ++i) give(take(random.one_in(4) ? 100 : random.between(600000, 3 * kMiB)));
    if (support::figures().dirty > dirty - 40 * kMiB) _exit(5);
    // The rest, not counted.
    for (int i = 0; i < 500'000; ++i) hummock_free(get(70000));
    const hummock_stats_t now = support::figures();
    if (now.dirty > 64 * kMiB + now.live / 32) _exit(6);
  });
}

TEST_CASE("a program that only frees: what exceeds the budget goes with the frees, a little with each") {
  support::HangGuard guard(1200);
  hold([] {
    support::Random random(2);
    std::vector<void*> blocks = fill(4096, random);
    std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));
    for (size_t i = 0; i < blocks.size(); ++i) {
      i % 64 == 0 ? give(blocks[i]) : hummock_free(blocks[i]);
      if (i % 256 != 0) continue;
      const hummock_stats_t now = support::figures();
      if (now.dirty > now.live / 2 + 160 * kMiB) _exit(5);
    }
    if (support::figures().dirty > 16 * kMiB) _exit(6);
  });
}

TEST_CASE("thousands of regions, all with room for something: no search sees them all") {
  support::HangGuard guard(1200);
  hold([] {
    support::Random random(3);
    constexpr size_t kRegions = 2000;
    std::vector<void*> blocks;
    for (size_t i = 0; i < kRegions; ++i) blocks.push_back(get(random.between(17 * kMiB, 31 * kMiB)));
    for (int i = 0; i < 60; ++i) {
      void* some[] = {take(100000), take(3 * kMiB), take(random.between(kMiB, 12 * kMiB)),
                      take(2 * kMiB, 2 * kMiB), take(500000, kMiB)};
      for (void* each : some) give(each);
    }
  });
}

TEST_CASE("another thread freed all blocks of a size: no malloc takes them all, and they are taken") {
  support::HangGuard guard(1200);
  for (const size_t size : {16, 100, 1000, 20000}) {
    CAPTURE(size);
    hold([size] {
      std::vector<void*> blocks(size < 20000 ? 1'000'000 : 50'000);
      for (void*& block : blocks) block = get(size);
      const size_t live = support::figures().live;
      std::thread([&] {
        for (void* block : blocks) hummock_free(block);
      }).join();
      for (int i = 0; i < 600; ++i) take(size);
      for (int i = 0; i < 100'000; ++i) get(size % 1000 + 16);  // not counted
      if (support::figures().live > live / 2 + 16 * kMiB + 100'000 * (size % 1000 + 16)) _exit(5);
    });
  }
}

TEST_CASE("a thread takes over the slabs of one that ended: no malloc looks at all their blocks") {
  support::HangGuard guard(1200);
  for (const size_t size : {16, 100, 1000}) {
    CAPTURE(size);
    hold([size] {
      std::thread([size] {
        std::vector<void*> blocks(500'000);
        for (void*& block : blocks) block = get(size);
        for (size_t i = 0; i < blocks.size(); ++i) {
          if (i % 8 != 0) hummock_free(blocks[i]);
        }
      }).join();
      for (int i = 0; i < 1000; ++i) take(size);
    });
  }
}

TEST_CASE("another thread frees the last block of each of many slabs: no free ends them all") {
  support::HangGuard guard(1200);
  for (const bool ended : {false, true}) {
    CAPTURE(ended);
    hold([ended] {
      constexpr size_t kSize = 256, kPerSlab = 65536 / kSize, kSlabs = 1500;
      std::vector<void*> last;
      std::promise<void> ready, done;
      std::thread owner([&] {
        std::vector<void*> blocks(kPerSlab * kSlabs);
        for (void*& block : blocks) block = get(kSize);
        for (size_t i = 0; i < blocks.size(); ++i) {
          if (i % kPerSlab == 0) {
            last.push_back(blocks[i]);
          } else {
            hummock_free(blocks[i]);
          }
        }
        ready.set_value();
        if (!ended) done.get_future().wait();
      });
      ready.get_future().wait();
      if (ended) owner.join();
      for (void* block : last) give(block);
      done.set_value();
      if (!ended) owner.join();
    });
  }
}

TEST_CASE("a thread frees the last block of slabs where others freed all else: no free takes their list") {
  support::HangGuard guard(1200);
  for (const size_t size : {16, 32, 256}) {
    CAPTURE(size);
    hold([size] {
      std::vector<void*> blocks(8 * kMiB / size), stay, go;
      for (void*& block : blocks) block = get(size);
      const auto slot = [](const void* p) { return reinterpret_cast<uintptr_t>(p) >> 16; };
      for (size_t i = 0; i < blocks.size(); ++i)
        (i == 0 || slot(blocks[i]) != slot(blocks[i - 1]) ? stay : go).push_back(blocks[i]);
      std::thread([&] {
        for (void* block : go) hummock_free(block);
      }).join();
      for (void* block : stay) give(block);
    });
  }
}

TEST_CASE(
    "another thread frees nearly all blocks of slabs whose thread waits: no free walks a slab's whole list") {
  support::HangGuard guard(1200);
  for (const size_t size : {16, 64, 300}) {
    CAPTURE(size);
    hold([size] {
      constexpr size_t kStays = 997, kCounted = 1500;
      std::vector<void*> blocks(64 * kMiB / size);
      std::promise<void> ready, done;
      std::thread owner([&] {
        for (void*& block : blocks) *static_cast<char*>(block = get(size)) = 1;
        ready.set_value();
        done.get_future().wait();
      });
      ready.get_future().wait();
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (i % kStays == 0) continue;
        i + kCounted < blocks.size() ? hummock_free(blocks[i]) : give(blocks[i]);
      }
      done.set_value();
      owner.join();
    });
  }
}

TEST_CASE("another thread freed four of five blocks, and time goes by: no tick looks at too much") {
  support::HangGuard guard(1200);
  for (const size_t size : {500, 4096}) {
    CAPTURE(size);
    hold([size] {
      constexpr size_t kStays = 5;
      std::vector<void*> blocks(96 * kMiB / size);
      for (void*& block : blocks) *static_cast<char*>(block = get(size)) = 1;
      std::thread([&] {
        for (size_t i = 0; i < blocks.size(); ++i) {
          if (i % kStays != 0) hummock_free(blocks[i]);
        }
      }).join();
      for (size_t i = 0; i < 600; ++i) {
        clock_ms += i % 3 == 0 ? 50 : 2;
        void* block = take(16 + i * 37 % 3000);
        if (i % 2 == 0) give(block);
      }
    });
  }
}

TEST_CASE("a thread's own frees, a million in turn and in any order, and mallocs after") {
  support::HangGuard guard(1200);
  for (const bool shuffled : {false, true}) {
    hold([shuffled] {
      std::vector<void*> blocks(300'000);
      for (void*& block : blocks) block = get(16 + reinterpret_cast<uintptr_t>(&block) / 8 % 50 * 20);
      if (shuffled) std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));
      for (size_t i = 0; i < blocks.size(); ++i) i % 256 == 0 ? give(blocks[i]) : hummock_free(blocks[i]);
      for (int i = 0; i < 500; ++i) give(take(16 + static_cast<size_t>(i) % 1000));
    });
  }
}

// Each hole brings a part of the call's own memory, by one system call.
TEST_CASE("small blocks have used up the addresses, and most are free: what needs holes does little more") {
  support::HangGuard guard(1200);
  constexpr uint64_t kForHole = 1000;
  constexpr int kNoHoles = 0, kHoles = 1;
  for (const size_t mib : {1024, 8192}) {
    CAPTURE(mib);
    const stepper::Counts counts = stepped([mib] {
      const rlimit limit = {mib * kMiB, mib * kMiB};
      if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(4);
      std::vector<void*> blocks;
      blocks.reserve(mib * 11);
      while (void* p = hummock_malloc(100'000)) blocks.push_back(p);
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (i % 20 != 0) hummock_free(blocks[i]);
      }
      seen->unmaps = 0;
      const auto take_large = [](int kind, size_t size) {
        void* p = nullptr;
        stepper::counted(kind, [&] { p = hummock_malloc(size); });
        return p != nullptr;
      };
      for (const size_t size : {mib * kMiB / 25, mib * kMiB / 12}) {
        if (!take_large(kHoles, size)) _exit(5);
      }
      for (int i = 0; i < 50; ++i) {
        if (!take_large(kHoles, i % 2 == 0 ? 700'000 : 7 * kMiB)) _exit(6);
      }
      const uint64_t holes = seen->unmaps;
      if (take_large(kNoHoles, mib * kMiB) || take_large(kNoHoles, kMiB * kMiB)) _exit(7);
      if (holes < 20 || seen->unmaps != holes) _exit(8);
    });
    MESSAGE("most instructions of a call: " << counts.most[kNoHoles] << " without holes, "
                                            << counts.most[kHoles] << " with some; holes: " << seen->unmaps);
    CHECK(counts.most[kNoHoles] <= kMostInstructions);
    CHECK(counts.sum[kHoles] <= counts.calls[kHoles] * kMostInstructions + seen->unmaps * kForHole);
  }
}
