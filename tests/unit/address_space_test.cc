// Address space that the program has taken, in whatever shape: malloc fails only where a plain mapping of
// that size would. And what stands around our own mappings.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "base/options.h"
#include "os/os.h"
#include "pages/backing.h"
#include "pages/kept.h"
#include "pages/region.h"
#include "pages/region_map.h"
#include "support/figures.h"
#include "support/support.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace {

using namespace hummock::pages;
namespace options = hummock::options;
using options::HugePages;

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTiB = size_t{1} << 40;
const hummock::os::Calls real = hummock::os::calls;

size_t most_mappings() {
  size_t most = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

// A sanitizer has most of the address space for itself, and an emulator keeps a record of each page that is
// reserved: it would take all memory.
constexpr bool kHasAddresses =
    sizeof(void*) == 8 && HUMMOCK_TEST_SANITIZED == 0 && HUMMOCK_TEST_EMULATED == 0;

// In a process of its own. What it returned, or 1000 + the signal that ended it.
template <class Work>
int in_child(Work work) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    _exit(work());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

void* reserve_place(void* hint, size_t size) {
  void* p = mmap(hint, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
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

// A region more of slabs, which can stand nowhere else.
bool fill_a_region(std::vector<void*>* blocks) {
  for (size_t i = 0; i < hummock::kRegionSize / (60 * kKiB); ++i) {
    void* block = hummock_malloc(60 * kKiB);
    if (block == nullptr) return false;
    blocks->push_back(block);
  }
  return true;
}

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
      void* hint = random.one_in(3) ? reinterpret_cast<void*>(random.below(size_t{1} << 46) & ~(4 * kKiB - 1))
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

// ---- Regions two TiB apart -----------------------------------------------------------------------

uintptr_t offered;  // the place that the system offers for a region, again and again
size_t offers;

void* map_there(void* hint, size_t size, int protection, int flags) {
  const bool free_to_choose = reinterpret_cast<uintptr_t>(hint) < 2 * kTiB;  // that part is taken
  if (free_to_choose && size >= kHugePageSize && size <= hummock::kRegionSize && protection != PROT_NONE) {
    void* got = real.map(reinterpret_cast<void*>(offered), size, protection, flags | MAP_FIXED_NOREPLACE);
    if (got != MAP_FAILED) return ++offers, got;
  }
  return real.map(hint, size, protection, flags);
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

TEST_CASE("a region whose place has the entry of another goes elsewhere") {
  if (!kHasAddresses || support::checked()) return;
  CHECK(in_child([] {
          char* first = static_cast<char*>(hummock_malloc(20 * kMiB));
          if (first == nullptr) return 1;
          const uintptr_t region = reinterpret_cast<uintptr_t>(first) & ~(hummock::kRegionSize - 1);
          offered = region > 4 * kTiB ? region - 2 * kTiB : region + 2 * kTiB;
          hummock::os::calls.map = map_there;
          // Ten regions' worth of slabs: larger blocks could have mappings of their own.
          for (size_t i = 0; i < 10 * hummock::kRegionSize / (60 * kKiB); ++i) {
            char* block = static_cast<char*>(hummock_malloc(60 * kKiB));
            if (block == nullptr) return 2;
            if ((reinterpret_cast<uintptr_t>(block) & ~(hummock::kRegionSize - 1)) == offered) return 3;
            if (find_header(block) == nullptr || find_header(first) == nullptr) return 4;
            block[0] = block[60 * kKiB - 1] = 1;
          }
          hummock::os::calls = real;
          return offers >= 9 ? 0 : 5;
        }) == 0);
}

// The region map finds what is some times 2 TiB away in the same place, and free must tell it.
TEST_CASE("regions stand where an address 2 TiB lower is none") {
  if (!kHasAddresses || support::checked() || options::values.huge_pages >= HugePages::pool_2m) return;
  std::vector<void*> blocks;
  for (int i = 0; i < 3; ++i) REQUIRE(fill_a_region(&blocks));
  for (void* block : blocks) CHECK(reinterpret_cast<uintptr_t>(block) < 2 * kTiB);
  for (void* block : blocks) hummock_free(block);
  for (size_t size : {16, 64, 1024, 4096, 8192}) {
    CHECK(in_child([=] {
            auto* block = static_cast<char*>(hummock_malloc(size));
            hummock_free(reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(block) - 2 * kTiB));
            return 0;
          }) == 1000 + SIGABRT);
  }
}

TEST_CASE("regions go elsewhere where the lowest 2 TiB are taken") {
  if (!kHasAddresses) return;
  CHECK(in_child([] {
          for (uintptr_t at = uintptr_t{1} << 33; at < 2 * kTiB; at += uintptr_t{1} << 30) {
            reserve_place(reinterpret_cast<void*>(at), size_t{1} << 30);
          }
          std::vector<void*> blocks;
          const auto is_low = [&] { return reinterpret_cast<uintptr_t>(blocks.back()) < 2 * kTiB; };
          int regions = 0;  // first what is left of those that there are
          do {
            if (!fill_a_region(&blocks)) return 1;
          } while (is_low() && ++regions < 100);
          if (is_low()) return 2;
          for (void* block : blocks) hummock_free(block);
          return 0;
        }) == 0);
}

TEST_CASE("a mapping has left the region map before its addresses are anybody else's") {
  if (support::checked()) return;
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

TEST_CASE("what runs over the end of a region meets an inaccessible page") {
  if (support::checked()) return;
  constexpr size_t kAll = kMaxSpanSlots * hummock::kSlotSize;
  CHECK(in_child([] {
          auto* block = static_cast<volatile char*>(hummock_malloc(kAll));
          block[0] = 1;
          block[kAll - 1] = 1;
          return 0;
        }) == 0);
  CHECK(in_child([] {
          auto* block = static_cast<volatile char*>(hummock_malloc(kAll));
          block[kAll] = 1;
          return 0;
        }) == 1000 + SIGSEGV);
}

// ---- Two threads that purge one huge page --------------------------------------------------------

namespace {

std::vector<hummock::SlabHeader*> spans;  // of one slot each, all in one huge page
bool meanwhile;                           // the second purge is still to come

void give_eight() {
  for (int i = 0; i < 8; ++i) {
    give_span(spans.back());
    spans.pop_back();
  }
}

int advise_and_more(void* address, size_t size, int advice) {
  if (advice == MADV_DONTNEED && meanwhile) {
    meanwhile = false;
    std::thread([] {
      give_eight();
      purge_all(0);
    }).join();
  }
  return real.advise(address, size, advice);
}

}  // namespace

TEST_CASE("a huge page that two threads purge at once is split once") {
  CHECK(in_child([] {
          hummock_free(hummock_malloc(1));
          for (int i = 0; i < 500 && spans.size() < 24; ++i) {
            const Span span = allocate_span(1);
            if (span.header == nullptr) return 1;
            if (!spans.empty() && (reinterpret_cast<uintptr_t>(span.header->start) ^
                                   reinterpret_cast<uintptr_t>(spans[0]->start)) >= kHugePageSize) {
              spans.clear();
            }
            spans.push_back(span.header);
          }
          if (spans.size() != 24) return 2;
          HugePage* page = &region_of(spans[0])->page[slot_of(spans[0]) / kSlotsPerHugePage];
          for (hummock::SlabHeader* span : spans) span->start[0] = 1;
          page_lock.lock();
          set_backing(page, Backing::loose);
          page_lock.unlock();
          advised_bytes = 8 * kHugePageSize;
          hummock::os::calls.advise = advise_and_more;
          meanwhile = true;
          give_eight();
          purge_all(0);
          hummock::os::calls = real;
          if (meanwhile) return 3;
          return advised_bytes == 7 * kHugePageSize ? 0 : 4;
        }) == 0);
}
