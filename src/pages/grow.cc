// More address space for the page heap, in regions of 32 MiB.
#include "os/os.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/region.h"

namespace hummock::pages {
namespace {

// Called with page_lock held; new address space joins the lists.
void add_region(const NewRegion& fresh, size_t size, Region* region) {
  region->base = fresh.base;
  region->huge_pages = static_cast<unsigned>(size / (kSlotSize * kSlotsPerHugePage));
  mapped_bytes += size;
  const bool present = fresh.backing == Backing::pinned || fresh.backing == Backing::kept;
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    HugePage* page = &region->page[i];
    page->region = region;
    page->number = static_cast<uint8_t>(i);
    page->backing = fresh.backing;
    page->collapsed = present;
    page->used = i == 0;  // the headers
    page->dirty = present || (i == 0 && fresh.backing != Backing::small) ? ~uint32_t{0} : page->used;
    page->unread = page->dirty & ~page->used;
    count(page);
    refile(page);
  }
  region->header(0)->remote = reinterpret_cast<uintptr_t>(region);
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

// A smaller region is tried where limits are tight.
bool add_space(unsigned slots) {
  const size_t wish = (base::divide_up(slots, kSlotsPerHugePage) + (slots > kSlotsPerHugePage - 1)) *
                      kSlotsPerHugePage * kSlotSize;
  const size_t need = wish < kRegionSize ? wish : kRegionSize;
  Region* region = take_record();
  if (region == nullptr) return false;
  const bool first = __atomic_load_n(&regions, __ATOMIC_RELAXED) == nullptr;
  for (size_t size = kRegionSize; size >= need; size /= 2) {
    const NewRegion fresh = map_region(size, first);
    if (fresh.base == nullptr) continue;
    const bool bare = fresh.backing == Backing::small && !os::commit(fresh.base, kSlotSize);
    // enter_region: false when the entry is taken by a region 2 TiB away.
    if (bare || !enter_region(fresh.base, reinterpret_cast<SlabHeader*>(fresh.base))) {
      os::unmap(fresh.base, size);
      break;
    }
    os::LockGuard guard(page_lock);
    add_region(fresh, size, region);
    return true;
  }
  set_relaxed(spare_record, region);
  return false;
}

}  // namespace

bool grow(unsigned slots) {
  return add_space(slots) || (drop_all_kept() && add_space(slots));
}

}  // namespace hummock::pages
