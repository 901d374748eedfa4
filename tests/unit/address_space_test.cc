// Address space that the program has taken, in whatever shape: malloc fails only where a plain mapping of
// that size would. And what stands around our own mappings.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "address_space.h"
#include "os/os.h"
#include "pages/backing.h"
#include "pages/kept.h"
#include "pages/region.h"
#include "pages/region_map.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

using namespace hummock::pages;

const hummock::os::Calls real = hummock::os::calls;

size_t most_mappings() {
  size_t most = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

// A size whose every order of magnitude is as likely.
size_t draw(support::Random& random, unsigned least_bits, unsigned most_bits) {
  const size_t top = size_t{1} << random.between(least_bits, most_bits);
  return top + random.below(top);
}

// Programs that reserve much do it in powers of two, and what is left in between is what malloc gets.
size_t draw_reservation(support::Random& random) {
  switch (random.below(4)) {
    case 0:
      return 2 * kTiB - random.below(8) * 32 * kMiB;
    case 1:
      return size_t{1} << random.between(12, 42);
    default:
      return draw(random, 12, 41) & ~(4 * kKiB - 1);
  }
}

struct Reserved {
  void* start;
  size_t size;
};

// The layouts of one seed; 0, or the line where something was wrong.
int live_among_reservations(uint64_t seed) {
  support::Random random(seed);
  std::vector<Reserved> all;
  std::vector<void*> blocks, small;
  const size_t most = random.between(3, 100) * kTiB;
  size_t total = 0;
  for (int step = 0; step < 250; ++step) {
    const size_t size = draw_reservation(random);
    if (total + size <= most) {
      void* hint =
          random.one_in(3)
              ? reinterpret_cast<void*>(static_cast<uintptr_t>(random.next() % (64 * kTiB)) & ~(4 * kKiB - 1))
              : nullptr;
      if (void* start = reserve_place(hint, size)) all.push_back({start, size}), total += size;
    }
    if (random.one_in(6) && !all.empty()) {  // a hole in the midst, or all of it
      Reserved& old = all[random.below(all.size())];
      const size_t part = random.one_in(2) ? old.size : (old.size / 3) & ~(4 * kKiB - 1);
      if (part != 0 && munmap(static_cast<char*>(old.start) + old.size - part, part) == 0) {
        old.size -= part;
        total -= part;
      }
    }
    if (step % 6 == 5 && !fill_a_region(&small)) return 4;
    for (int i = 0; i < 6; ++i) {
      const size_t wanted = draw(random, 4, 27);
      char* block = static_cast<char*>(hummock_malloc(wanted));
      if (block == nullptr) {
        void* plain =
            mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (plain != MAP_FAILED) return 2;
        continue;
      }
      block[0] = block[wanted - 1] = 1;
      if (hummock_usable_size(block) < wanted) return 3;
      blocks.push_back(block);
      if (blocks.size() > 60) {
        const size_t at = random.below(blocks.size());
        hummock_free(blocks[at]);
        blocks[at] = blocks.back();
        blocks.pop_back();
      }
    }
  }
  for (void* block : blocks) hummock_free(block);
  for (void* block : small) hummock_free(block);
  return 0;
}

// ---- What the system is asked for while a mapping changes hands ----------------------------------

size_t known_while_gone;  // times that an address was known as ours when it could be another's
size_t looked;
bool refuse_remap;

// None of these may begin a block any more: after the call they may be anybody's.
void look(void* address, size_t size) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t at = (from + hummock::kRegionSize - 1) & ~(hummock::kRegionSize - 1); at < from + size;
       at += hummock::kRegionSize) {
    ++looked;
    known_while_gone += find_header(reinterpret_cast<void*>(at)) != nullptr;
  }
}

int unmap(void* address, size_t size) {
  look(address, size);
  return real.unmap(address, size);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  const bool moves = (flags & MREMAP_FIXED) != 0 && (flags & MREMAP_DONTUNMAP) == 0;
  if (moves) look(address, old_size);
  if (moves && refuse_remap) return errno = ENOMEM, MAP_FAILED;
  return real.remap(address, old_size, new_size, flags, target);
}

}  // namespace

TEST_CASE("malloc fails only where a plain mapping would fail") {
  if (!kHasAddresses) return;
  support::HangGuard guard(280);
  const uint64_t seed = support::run_seed();
  for (size_t i = 0; i < support::scaled(40, 6); ++i) {
    CAPTURE(seed);
    CAPTURE(i);
    CHECK(in_child([&] { return live_among_reservations(seed + i); }) == 0);
  }
}

TEST_CASE("a mapping has left the region map before its addresses are anybody else's") {
  if (support::checked() || sizeof(void*) < 8) return;  // 14 GiB
  known_while_gone = looked = 0;
  hummock::os::calls = {real.map, unmap, real.advise, remap};
  for (bool refuse : {false, true}) {
    refuse_remap = refuse;
    std::vector<void*> blocks;
    for (int i = 0; i < 24; ++i) blocks.push_back(hummock_malloc(40 * kMiB));
    for (size_t i = 0; i < blocks.size(); ++i) {
      memset(blocks[i], static_cast<int>(i) + 1, 100);
      void* grown = hummock_realloc(blocks[i], (64 + 40 * i) * kMiB);
      REQUIRE(grown != nullptr);
      CHECK(static_cast<char*>(grown)[99] == static_cast<char>(i + 1));
      CHECK(find_header(grown) != nullptr);
      blocks[i] = grown;
    }
    for (void* block : blocks) hummock_free(block);
    hummock_trim(0);
  }
  hummock::os::calls = real;
  refuse_remap = false;
  CHECK(looked > 20);
  CHECK(known_while_gone == 0);
}

TEST_CASE("60,000 very large blocks, and they go again") {
  if (!kHasAddresses) return;
  support::HangGuard guard(280);
  CHECK(in_child([] {
          const size_t kCount = std::min<size_t>(60000, most_mappings() - 5530);
          std::vector<void*> blocks(kCount);
          for (int round = 0; round < 2; ++round) {
            for (void*& block : blocks) {
              if ((block = hummock_malloc(33 * kMiB)) == nullptr) return 1;
            }
            for (size_t i = 0; i < kCount; i += 1000) {
              static_cast<char*>(blocks[i])[0] = 1;
              blocks[i] = hummock_realloc(blocks[i], 40 * kMiB);
              if (blocks[i] == nullptr || static_cast<char*>(blocks[i])[0] != 1) return 2;
            }
            for (size_t i = 0; i < kCount; i += 2) hummock_free(blocks[i]);
            for (size_t i = 1; i < kCount; i += 2) hummock_free(blocks[i]);
          }
          void* after = hummock_malloc(33 * kMiB);
          return after != nullptr && support::figures().mapped < size_t{4} << 30 ? 0 : 3;
        }) == 0);
}

TEST_CASE("until the process has no mapping left, and then again") {
  if (!kHasAddresses) return;
  support::HangGuard guard(280);
  CHECK(in_child([] {
          std::vector<void*> blocks;
          blocks.reserve(200000);
          // Adjacent where they can be: the system makes one mapping of two, and cannot always part them.
          while (void* block = hummock_malloc(64 * kMiB - 64 * kKiB)) {
            blocks.push_back(block);
            if (blocks.size() == blocks.capacity()) break;
          }
          const bool full = blocks.size() < blocks.capacity();
          if (full && reserve_place(nullptr, 64 * kMiB) != nullptr) return 1;
          for (size_t i = 0; i < blocks.size(); i += 2) hummock_free(blocks[i]);
          for (size_t i = 0; i < blocks.size(); i += 2) {
            if ((blocks[i] = hummock_malloc(64 * kMiB - 64 * kKiB)) == nullptr) return 2;
          }
          for (void* block : blocks) hummock_free(block);
          return 0;
        }) == 0);
}

TEST_CASE("where the program has taken all mappings, each region gives up its guard for another one") {
  if (!kHasAddresses || support::checked()) return;
  support::HangGuard guard(280);
  CHECK(in_child([] {
          constexpr int kRegions = 24;
          constexpr size_t kPage = 4 * kKiB, kBlock = 30 * kMiB;
          for (int i = 0; i < kRegions; ++i) {
            if (hummock_malloc(kBlock) == nullptr) return 1;
          }
          const size_t pages = 2 * most_mappings();
          auto* area = static_cast<char*>(
              mmap(nullptr, pages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
          if (area == MAP_FAILED) return 2;
          size_t taken = 1;
          while (taken < pages && mprotect(area + taken * kPage, kPage, PROT_READ) == 0) taken += 2;
          if (taken >= pages) return 3;
          for (int i = 0; i < kRegions / 2; ++i) {
            if (hummock_malloc(kBlock) == nullptr) return 4;
          }
          return 0;
        }) == 0);
}

TEST_CASE("no guard is given up where the address space is bounded") {
  if (!kHasAddresses || support::checked()) return;
  CHECK(in_child([] {
          if (hummock_malloc(100) == nullptr) return 1;
          const rlimit limit = {1, 1};
          if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
          for (int i = 0; i < 10; ++i) {
            if (hummock_malloc(40 * kMiB) != nullptr) return 3;
          }
          return makes_guards() ? 0 : 4;
        }) == 0);
}

TEST_CASE("an inaccessible page stands before the headers of a very large block") {
  if (support::checked()) return;
  CHECK(in_child([] {
          auto* block = static_cast<volatile char*>(hummock_malloc(40 * kMiB));
          const volatile char* header = block - kHeaders;
          const char seen = *header;  // may be read
          *(block - kHeaders - 1) = 1;
          return static_cast<int>(seen) * 0 + 1;
        }) == 1000 + SIGSEGV);
}
