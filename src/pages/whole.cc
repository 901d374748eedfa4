// The page heap as a whole: its figures, and its end.
#include "os/os.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/span_cache.h"

namespace hummock::pages {

Totals totals() {
  os::LockGuard guard(page_lock);
  Totals sum = {};
  sum.mapped = mapped_bytes;
  sum.used = (used_slots - cached_slots()) * kSlotSize;
  sum.dirty = (dirty_slots + kept_slots + cached_slots()) * kSlotSize;
  sum.peak = peak_bytes;
  sum.purged = purged_slots * kSlotSize;
  for (const Region* region = regions; region != nullptr; region = region->next) sum.headers += kSlotSize;
  sum.kept = kept_slots * kSlotSize;
  sum.pinned = relaxed(pinned_bytes);
  sum.advised = relaxed(advised_bytes);
  sum.refusals = relaxed(huge_refusals);
  huge_totals(&sum);
  return sum;
}

bool is_locked() {
  return page_lock.is_held() || huge_is_locked() || metadata_is_locked() || reserve_is_locked();
}

void unmap_all() {
  for (Region* region = regions; region != nullptr;) {
    char* base = region->base;
    const size_t size = region->huge_pages * kSlotsPerHugePage * kSlotSize;
    region = region->next;
    os::unmap(base, size);
  }
  regions = nullptr;
  unmap_kept();
  drop_reserve();
  os::unmap_maps();
}

}  // namespace hummock::pages
