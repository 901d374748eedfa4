// Very large blocks: mappings that are used again, what stands behind a shorter block, blocks that move.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "os/os.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = size_t{1} << 20;
const hummock::os::Calls real = hummock::os::calls;

std::atomic<size_t> changes, lifts;  // of the address space; moves that leave it as it was
std::atomic<size_t> watched_moves;   // of this block's pages:
std::atomic<const void*> watched;
std::atomic<bool> refuse_lifts, refuse_moves, refuse_unmaps;

void* map(void* hint, size_t size, int protection, int flags) {
  ++changes;
  return real.map(hint, size, protection, flags);
}
int unmap(void* address, size_t size) {
  ++changes;
  if (refuse_unmaps) return errno = ENOMEM, -1;
  return real.unmap(address, size);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  ++changes;
  const bool lift = (flags & MREMAP_DONTUNMAP) != 0;
  if (lift ? refuse_lifts : refuse_moves) return errno = ENOMEM, MAP_FAILED;
  lifts += lift;
  watched_moves += (flags & MREMAP_FIXED) != 0 && address == watched;
  return real.remap(address, old_size, new_size, flags, target);
}

// Counts the calls, and refuses some.
class Watching {
 public:
  explicit Watching(bool no_lifts = false, bool no_moves = false) {
    changes = lifts = watched_moves = 0;
    watched = nullptr;
    refuse_lifts = no_lifts;
    refuse_moves = no_moves;
    hummock::os::calls = {map, unmap, real.advise, remap};
  }
  ~Watching() {
    refuse_unmaps = false;
    hummock::os::calls = real;
  }
};

// As much as this is in use, so that what is freed may wait.
class InUse {
 public:
  explicit InUse(size_t size) : block_(hummock_malloc(size)) { REQUIRE(block_ != nullptr); }
  ~InUse() { hummock_free(block_); }

 private:
  void* block_;
};

// A word in each 64 KiB.
void mark(char* block, uint64_t seed, size_t from, size_t to) {
  for (size_t at = (from + 64 * kKiB - 1) / (64 * kKiB) * (64 * kKiB); at + 8 <= to; at += 64 * kKiB) {
    const uint64_t word = support::pattern_word(seed, at);
    memcpy(block + at, &word, 8);
  }
}
bool marked(const char* block, uint64_t seed, size_t to) {
  for (size_t at = 0; at + 8 <= to; at += 64 * kKiB) {
    const uint64_t word = support::pattern_word(seed, at);
    if (memcmp(block + at, &word, 8) != 0) return false;
  }
  return true;
}

char* resize(char* block, size_t size) {
  char* moved = static_cast<char*>(hummock_realloc(block, size));
  REQUIRE(moved != nullptr);
  return moved;
}

}  // namespace

TEST_CASE("a mapping serves a shorter block, which grows over the rest without a call") {
  support::HangGuard guard(120);
  const InUse in_use(1024 * kMiB);
  char* first = static_cast<char*>(hummock_malloc(120 * kMiB));
  REQUIRE(first != nullptr);
  mark(first, 1, 0, 120 * kMiB);
  hummock_free(first);
  {
    Watching watching;
    char* block = static_cast<char*>(hummock_malloc(40 * kMiB));
    REQUIRE(block != nullptr);
    CHECK(hummock_usable_size(block) < 40 * kMiB + 64 * kKiB);
    mark(block, 2, 0, 40 * kMiB);
    block = resize(block, 100 * kMiB);
    CHECK(marked(block, 2, 40 * kMiB));
    if (!support::checked()) {
      CHECK(block == first);
      CHECK(changes == 0);
      CHECK(support::figures().dirty >= 20 * kMiB);
    }
    mark(block, 2, 40 * kMiB, 100 * kMiB);
    hummock_trim(0);
    CHECK(support::figures().dirty < 8 * kMiB);
    block = resize(block, 118 * kMiB);
    CHECK(marked(block, 2, 100 * kMiB));
    hummock_free(block);
  }
}

TEST_CASE("a mapping that rests goes as spans grow, which cannot use it") {
  if (support::checked()) return;  // freed blocks are in quarantine
  support::HangGuard guard(120);
  const InUse in_use(1024 * kMiB);
  hummock_free(hummock_malloc(100 * kMiB));
  CHECK(support::figures().dirty >= 100 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 70; ++i) {
    blocks.push_back(hummock_malloc(kMiB));
    if (i > 50) usleep(2000);  // ticks are 10 ms apart
  }
  CHECK(support::figures().dirty < 50 * kMiB);
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("a block that gets shorter is as long as it was asked, also where the system unmaps nothing") {
  support::HangGuard guard(120);
  Watching watching;
  refuse_unmaps = true;
  std::vector<char*> blocks(100);  // more than have a tail at a time
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = static_cast<char*>(hummock_malloc(64 * kMiB));
    REQUIRE(blocks[i] != nullptr);
    mark(blocks[i], i, 0, 7 * kMiB);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = resize(blocks[i], 6781236);
    CHECK(marked(blocks[i], i, 6781236));
    CHECK(hummock_usable_size(blocks[i]) < 6781236 + 64 * kKiB);
  }
  refuse_unmaps = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = resize(blocks[i], i % 2 == 0 ? 40 * kMiB : 5 * kMiB);
    CHECK(marked(blocks[i], i, 5 * kMiB));
    mark(blocks[i], i, 0, i % 2 == 0 ? 40 * kMiB : 5 * kMiB);
  }
  hummock_trim(0);
  for (size_t i = 0; i < blocks.size(); ++i) {
    CHECK(marked(blocks[i], i, i % 2 == 0 ? 40 * kMiB : 5 * kMiB));
    hummock_free_sized(blocks[i], i % 2 == 0 ? 40 * kMiB : 5 * kMiB);
  }
}

TEST_CASE("a block without room behind it moves, with its memory or as a copy") {
  support::HangGuard guard(240);
  for (int how = 0; how < 3; ++how) {
    CAPTURE(how);
    hummock_trim(0);
    Watching watching(how > 0, how > 1);
    std::vector<char*> blocks(30);
    constexpr size_t kSize = 5 * kMiB + 100;
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = static_cast<char*>(hummock_malloc(kSize));
      REQUIRE(blocks[i] != nullptr);
      mark(blocks[i], i, 0, kSize);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = resize(blocks[i], 3 * kSize);
      CHECK(marked(blocks[i], i, kSize));
      mark(blocks[i], i, kSize, 3 * kSize);
    }
    if (how == 0 && !support::checked() && !HUMMOCK_TEST_EMULATED) CHECK(lifts > 5);
    // What they left reads zero where that is promised, and is nobody else's.
    for (int i = 0; i < 20; ++i) {
      char* fresh = static_cast<char*>(hummock_calloc(1, kSize));
      REQUIRE(fresh != nullptr);
      CHECK(support::all_zero(fresh, 0, kSize));
      memset(fresh, 0xa5, kSize);
      if (i % 2 == 0) hummock_free(fresh);
      if (i % 2 != 0) blocks.push_back(fresh);
    }
    for (size_t i = 0; i < 30; ++i) CHECK(marked(blocks[i], i, 3 * kSize));
    for (char* block : blocks) hummock_free(block);
  }
}

// Asked to move them, Linux before 6.17 unmaps the target, later ones may move a part; then both refuse.
TEST_CASE("a block that the program has locked or advised a part of is copied, not moved") {
  if (HUMMOCK_TEST_EMULATED || support::checked()) return;
  support::HangGuard guard(240);
  for (const size_t size : {5 * kMiB + 100, 12 * kMiB, 40 * kMiB}) {
    for (const bool whole : {false, true}) {
      CAPTURE(size);
      CAPTURE(whole);
      Watching watching;
      char* blocks[3];  // the first two have no room behind them
      for (size_t i = 0; i < 3; ++i) {
        blocks[i] = static_cast<char*>(hummock_malloc(size));
        REQUIRE(blocks[i] != nullptr);
        mark(blocks[i], i, 0, size);
      }
      const uintptr_t page = (reinterpret_cast<uintptr_t>(blocks[1]) + kMiB) & ~uintptr_t{4095};
      char* from = whole ? blocks[1] : reinterpret_cast<char*>(page);
      const size_t bytes = whole ? size : kMiB;
      // The sanitizers' mlock does nothing. A user may lock only so much.
      const bool locked = whole && syscall(SYS_mlock, from, bytes) == 0;
      if (!whole) REQUIRE(madvise(from, bytes, MADV_DONTDUMP) == 0);
      watched = blocks[1];
      lifts = watched_moves = 0;
      blocks[1] = resize(blocks[1], 3 * size);
      if (locked || !whole) CHECK(lifts == 0);
      if (!whole) CHECK(watched_moves == 0);
      CHECK(marked(blocks[1], 1, size));
      if (locked) syscall(SYS_munlock, from, bytes);  // what is locked does not go back
      for (char* block : blocks) hummock_free(block);
      hummock_trim(0);
    }
  }
}

TEST_CASE("threads resize very large blocks while memory is given back") {
  support::HangGuard guard(240);
  const InUse in_use(1024 * kMiB);
  std::vector<std::thread> crew;
  std::atomic<size_t> lost{0}, running{4};
  for (size_t t = 0; t < 4; ++t) {
    crew.emplace_back([&, t] {
      support::Random random(support::run_seed() + t);
      char* blocks[8] = {};
      size_t sizes[8] = {};
      for (size_t round = 0; round < support::scaled(1500, 200); ++round) {
        const size_t i = random.below(8);
        const uint64_t seed = t * 8 + i;
        const size_t size = random.between(3 * kMiB, 90 * kMiB);
        if (blocks[i] != nullptr && !marked(blocks[i], seed, sizes[i])) ++lost;
        if (random.one_in(2)) {
          hummock_free(blocks[i]);
          blocks[i] = nullptr;
          sizes[i] = 0;
        }
        char* now = static_cast<char*>(hummock_realloc(blocks[i], size));
        if (now == nullptr || !marked(now, seed, std::min(sizes[i], size))) ++lost;
        if (now == nullptr) continue;
        blocks[i] = now;
        mark(now, seed, 0, size);
        sizes[i] = size;
      }
      for (char* block : blocks) hummock_free(block);
      --running;
    });
  }
  while (running != 0) {
    hummock_trim(64 * kMiB);
    std::this_thread::yield();
    hummock_trim(0);
  }
  for (std::thread& thread : crew) thread.join();
  CHECK(lost == 0);
  hummock_trim(0);
  CHECK(support::figures().dirty < 16 * kMiB);
}
