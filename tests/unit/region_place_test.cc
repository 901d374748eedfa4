// Where regions stand, what stands around them, and threads that purge one huge page.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <sys/mman.h>

#include <thread>
#include <vector>

#include "address_space.h"
#include "base/options.h"
#include "os/os.h"
#include "pages/backing.h"
#include "pages/region.h"
#include "pages/region_map.h"
#include "support/figures.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace {

using namespace hummock::pages;
namespace options = hummock::options;
using options::HugePages;

const hummock::os::Calls real = hummock::os::calls;

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
          constexpr size_t kGiB = size_t{1} << 30;
          for (uint64_t at = 8 * uint64_t{kGiB}; at < 2 * kTiB; at += kGiB) {
            reserve_place(reinterpret_cast<void*>(at), kGiB);
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
