#include "pages/span_cache.h"

#include "pages/region.h"

namespace hummock::pages {

NearCache near_caches[kNearCaches];
SlabHeader* far_cache[kFarLengths];

namespace {

constexpr size_t kLeastSlots = 64;  // 4 MiB
constexpr size_t kShare = 32;

uint32_t open_slots;  // lengths of all open entries; atomic, relaxed: a bound

bool may_open(unsigned slots) {
  const size_t share = (relaxed(used_slots) + relaxed(huge_bytes) / kSlotSize) / kShare;
  return relaxed(open_slots) + slots <= (share > kLeastSlots ? share : kLeastSlots);
}

void close_entry(SlabHeader*& entry, unsigned slots) {
  if (relaxed(entry) == nullptr) return;
  // acquire: as in take_entry().
  SlabHeader* before = __atomic_exchange_n(&entry, nullptr, __ATOMIC_ACQUIRE);
  if (before != nullptr) __atomic_fetch_sub(&open_slots, slots, __ATOMIC_RELAXED);
  if (is_span(before)) give_span(before);
}

// Calls act(entry, slots) for each of the cache.
template <class Act>
void for_entries(unsigned cache, Act act) {
  SlabHeader** entries = cache < kNearCaches ? near_caches[cache].entry : far_cache;
  const unsigned count = cache < kNearCaches ? kNearLengths : kFarLengths;
  for (unsigned i = 0; i < count; ++i) act(entries[i], i + 1);
}

}  // namespace

SlabHeader* keep_in_closed(SlabHeader*& entry, SlabHeader* header) {
  const unsigned slots = header->slots;
  if (!may_open(slots)) return header;
  __atomic_fetch_add(&open_slots, slots, __ATOMIC_RELAXED);
  SlabHeader* closed = nullptr;
  if (__atomic_compare_exchange_n(&entry, &closed, header, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    return nullptr;
  }
  __atomic_fetch_sub(&open_slots, slots, __ATOMIC_RELAXED);
  return header;
}

void flush_cache(unsigned cache) {
  for_entries(cache, close_entry);
}

uint32_t cached_slots() {
  uint32_t sum = 0;
  for (unsigned cache = 0; cache < kCaches; ++cache) {
    for_entries(cache,
                [&sum](SlabHeader*& entry, unsigned slots) { sum += is_span(relaxed(entry)) ? slots : 0; });
  }
  return sum;
}

}  // namespace hummock::pages
