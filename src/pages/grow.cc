// More address space for the page heap, in regions of 32 MiB.
#include "base/options.h"
#include "os/os.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/region.h"
#include "pages/room.h"
#include "pages/runs.h"

namespace hummock::pages {
namespace {

// Called with page_lock held; new address space joins the lists.
void add_region(const NewRegion& fresh, size_t size, Region* region) {
  region->base = fresh.base;
  region->huge_pages = static_cast<unsigned>(size / kHugePageSize);
  region->guarded = fresh.guarded;
  mapped_bytes += size;
  const bool present = fresh.backing == Backing::pinned || fresh.backing == Backing::kept;
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    HugePage* page = &region->page[i];
    page->region = region;
    page->number = static_cast<uint8_t>(i);
    page->backing = fresh.backing;
    page->collapsed = present;
    const bool last = fresh.guarded && i + 1 == region->huge_pages;
    const uint32_t guard = last ? uint32_t{1} << (kSlotsPerHugePage - 1) : 0;
    page->used = guard | (i == 0);  // the headers
    page->dirty = present || (i == 0 && page->backing != Backing::small) ? ~uint32_t{0} : page->used;
    page->unread = page->dirty & ~page->used;
    count(page);
    refile(page);
  }
  region->header(0)->remote = reinterpret_cast<uintptr_t>(region);
  join_run(region, 1, region->huge_pages * kSlotsPerHugePage - 1 - fresh.guarded);
  expect_collapses();
  region->next = regions;
  __atomic_store_n(&regions, region, __ATOMIC_RELEASE);  // pairs with the acquire of visit_headers
}

// A region's record that came to nothing. Atomic: exchanged out, so one thread has it; a second one that is
// put there meanwhile is lost.
Region* spare_record;

Region* take_record() {
  if (relaxed(spare_record) != nullptr) {
    if (Region* spare = __atomic_exchange_n(&spare_record, nullptr, __ATOMIC_RELAXED)) return spare;
  }
  return static_cast<Region*>(new_record(sizeof(Region)));
}

// A region that stands where its entry in the region map is free; base null: not to be had. Another thread's
// region may take the entry of a place that was just found, and what was reserved ahead of need may stand
// where one has been taken since; each try uses up one of those.
NewRegion enter_new(size_t size) {
  for (unsigned tries = 0; tries < kMapEntries; ++tries) {
    const NewRegion fresh = map_region(size);
    if (fresh.base == nullptr) return fresh;
    const bool bare = fresh.backing == Backing::small && !os::commit(fresh.base, kSlotSize);
    if (!bare && enter_region(fresh.base)) return fresh;
    unmap_region(fresh, size);
    if (bare) break;
  }
  return {nullptr, Backing::small, false};
}

// Regions have 2, 4, 8, 16 or 32 MiB. One slot has the headers, and one the guard.
size_t least_region(unsigned slots) {
  size_t size = kHugePageSize;
  while (size < kRegionSize && size < (slots + 2) * kSlotSize) size *= 2;
  return size;
}

// A smaller region is tried where limits are tight.
Added add_space(unsigned slots) {
  const size_t need = least_region(slots);
  Region* region = take_record();
  if (region == nullptr) return {};
  for (size_t size = kRegionSize; size >= need; size /= 2) {
    const NewRegion fresh = enter_new(size);
    if (fresh.base == nullptr) continue;
    os::LockGuard guard(page_lock);
    add_region(fresh, size, region);
    return {fresh.base, size};
  }
  set_relaxed(spare_record, region);
  return {};
}

bool may_name = true;  // atomic, relaxed: false once the system has refused
bool first_is_named;   // atomic, relaxed: two threads may both name it

void name(const Added& space) {
  if (!os::name_mapping(space.start, space.size, "hummock")) set_relaxed(may_name, false);
}

// One call for each region except the first, so a small program makes none.
void name_regions(const Added& added) {
  const Region* newest = __atomic_load_n(&regions, __ATOMIC_ACQUIRE);
  if (newest->next == nullptr || !relaxed(may_name) || !options::values.observe) return;
  name(added);
  if (relaxed(first_is_named) || !relaxed(may_name)) return;
  set_relaxed(first_is_named, true);
  for (const Region* region = newest->next; region != nullptr; region = region->next) {
    name({region->base, region->huge_pages * kHugePageSize});
  }
}

}  // namespace

bool grow(unsigned slots) {
  Room room(least_region(slots), true);
  Added added;
  do {
    added = fill_hole(slots);
    if (added.start == nullptr) added = add_space(slots);
  } while (added.start == nullptr && room.make());
  if (added.start == nullptr) return false;
  name_regions(added);
  return true;
}

}  // namespace hummock::pages
