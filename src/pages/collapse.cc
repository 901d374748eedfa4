// Huge pages for memory that was touched before they were wanted.
#include <errno.h>

#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/region.h"

namespace hummock::pages {
namespace {

constexpr unsigned kLookAt = 64;           // huge pages looked at in one step
constexpr uint64_t kShare = 50;            // 1/50 of the time at most
constexpr uint64_t kIdleMs = 100;          // when nothing was found
constexpr uint64_t kWorthLogging = 50000;  // ns; less is a huge page that was one already

uint64_t due;  // ms; atomic, relaxed: two threads may both go
BackOff back_off;
bool impossible;      // atomic, relaxed: this kernel cannot
Region* next_region;  // guarded by page_lock, as is the number
unsigned next_number;

// Full, asked huge pages for, and not known to be one. Marks it.
HugePage* find_candidate() {
  os::LockGuard guard(page_lock);
  for (unsigned looked = 0; looked < kLookAt; ++looked) {
    if (next_region == nullptr) next_region = regions, next_number = 0;
    if (next_region == nullptr) return nullptr;
    HugePage* page = &next_region->page[next_number];
    if (++next_number >= next_region->huge_pages) next_region = next_region->next, next_number = 0;
    const bool asked = page->backing == Backing::loose || page->backing == Backing::whole;
    if (asked && page->is_full() && !page->busy && !page->collapsed) {
      page->collapsed = true;
      return page;
    }
  }
  return nullptr;
}

// The bits of small pages' room that is full.
uint32_t full_pages(Region* region) {
  os::LockGuard guard(page_lock);
  uint32_t mask = 0;
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    if (region->guarded && i + 1 == region->huge_pages) break;  // it can be no huge page
    const HugePage& page = region->page[i];
    if (page.backing == Backing::small && page.is_full() && !page.busy) mask |= 1u << i;
  }
  return mask;
}

// How many bytes it marked: some may have changed meanwhile.
size_t mark_asked(Region* region, uint32_t mask) {
  os::LockGuard guard(page_lock);
  size_t marked = 0;
  for (; mask != 0; mask &= mask - 1) {
    HugePage* page = &region->page[__builtin_ctz(mask)];
    if (page->backing != Backing::small || page->busy) continue;
    set_backing(page, Backing::loose);
    marked += kHugePageSize;
  }
  __atomic_fetch_add(&advised_bytes, marked, __ATOMIC_RELAXED);
  return marked;
}

}  // namespace

void collapse_one() {
  if (relaxed(advised_bytes) == 0 || __atomic_load_n(&impossible, __ATOMIC_RELAXED)) return;
  const uint64_t now = os::now_ms();
  if (now < __atomic_load_n(&due, __ATOMIC_RELAXED) || !back_off.may(now)) return;
  HugePage* page = find_candidate();
  if (page == nullptr) return __atomic_store_n(&due, now + kIdleMs, __ATOMIC_RELAXED);
  os::Event event;
  const uint64_t before = os::now_ns();
  const int error = os::collapse(page->start(), kHugePageSize);
  const uint64_t took = os::now_ns() - before;
  __atomic_store_n(&due, now + took * kShare / 1000000, __ATOMIC_RELAXED);
  if (error == 0) {
    back_off.served();
    if (took >= kWorthLogging) event.log("Collapse", page->start(), kHugePageSize, 0);
    return;
  }
  back_off.refused(now);
  __atomic_fetch_add(&huge_refusals, 1, __ATOMIC_RELAXED);
  if (error == EINVAL || error == ENOSYS) __atomic_store_n(&impossible, true, __ATOMIC_RELAXED);
  event.log("Collapse failed", page->start(), kHugePageSize, 0, os::error_name(error));
  os::LockGuard guard(page_lock);
  page->collapsed = false;
}

void advise_full_pages() {
  os::Event event;
  size_t asked = 0;
  for (Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); region != nullptr;
       region = region->next) {
    uint32_t mask = full_pages(region);
    while (mask != 0) {
      const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
      const unsigned length = static_cast<unsigned>(__builtin_ctz(~(mask >> first)));
      const uint32_t run = base::low_mask(length) << first;
      mask &= ~run;
      const size_t bytes = length * kHugePageSize;
      if (!under_cap(bytes) || os::advise_huge(region->page[first].start(), bytes, true) != 0) continue;
      asked += mark_asked(region, run);
    }
  }
  if (asked != 0) event.log("Advise THP", nullptr, asked, 0, "full pages of a heap that became large");
}

}  // namespace hummock::pages
