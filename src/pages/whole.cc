// The page heap as a whole: its figures, and its end.
#include "os/os.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/room.h"
#include "pages/span_cache.h"

namespace hummock::pages {
namespace {

void add_spans(Totals* sum) {
  os::LockGuard guard(page_lock);
  const size_t cached = cached_slots();  // may be ahead of used_slots
  sum->mapped += mapped_bytes;
  sum->used = (used_slots > cached ? used_slots - cached : 0) * kSlotSize;
  sum->dirty = (dirty_slots + kept_slots + cached) * kSlotSize;
  sum->peak = peak_bytes;
  sum->purged = purged_slots * kSlotSize;
  sum->kept = kept_slots * kSlotSize;
  sum->reused = (reused_slots + far_reused()) * kSlotSize;
}

}  // namespace

base::OwnLine<Untouched> untouched;
base::OwnLine<size_t> in_use_lately;

namespace {

constexpr size_t kMostHidden = 8 << 20;

}  // namespace

void note_untouched(ptrdiff_t bytes, ptrdiff_t hidden) {
  __atomic_fetch_add(&untouched.value.bytes, static_cast<size_t>(bytes), __ATOMIC_RELAXED);
  if (hidden != 0) __atomic_fetch_add(&untouched.value.hidden, static_cast<size_t>(hidden), __ATOMIC_RELAXED);
}

bool hides_much() {
  const size_t bytes = relaxed(untouched.value.hidden);
  if (bytes <= kMostHidden) return false;
  return bytes > bound_by_use(kMostHidden, 16) + bound_regret(hidden_regret.value.bytes());
}

// One lock after the other: a figure may be a little older than the next.
Totals totals() {
  Totals sum = {};
  huge_totals(&sum);
  add_spans(&sum);
  for (const Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); region != nullptr;
       region = region->next) {
    sum.headers += kSlotSize;
  }
  sum.pinned = relaxed(pinned_bytes);
  sum.advised = relaxed(advised_bytes);
  sum.refusals = relaxed(huge_refusals);
  return sum;
}

bool is_locked() {
  return growth_lock.is_held() || page_lock.is_held() || huge_is_locked() || metadata_is_locked() ||
         reserve_is_locked();
}

void unmap_all() {
  for (const Region* region = regions; region != nullptr;) {
    unmap_but_holes(region);
    region = region->next;
  }
  regions = nullptr;
  unmap_kept();
  drop_reserve();
  os::unmap_maps();
}

}  // namespace hummock::pages
