#include "pages/span_cache.h"

#include "pages/region.h"

namespace hummock::pages {

NearCache near_caches[kNearCaches];
SlabHeader* far_cache[kFarLengths];

namespace {

constexpr size_t kLeastOpen = 4 << 20;
constexpr size_t kShare = 32;

uint32_t open_slots;   // lengths of all open entries; atomic, relaxed: a bound
unsigned next_excess;  // atomic, relaxed: entries are closed in turn

bool may_be_open(size_t slots) {
  return slots * kSlotSize <= bound_by_use(kLeastOpen, kShare);
}

struct Entry {
  SlabHeader*& span;
  unsigned slots;
};
Entry entry_of(unsigned number) {
  const unsigned far = kNearCaches * kNearLengths;
  if (number >= far) return {far_cache[number - far], number - far + 1};
  return {near_caches[number / kNearLengths].entry[number % kNearLengths], number % kNearLengths + 1};
}

}  // namespace

SlabHeader* close_entry(unsigned number) {
  const Entry entry = entry_of(number);
  if (relaxed(entry.span) == nullptr) return nullptr;
  // acquire: as in take_entry().
  SlabHeader* before = __atomic_exchange_n(&entry.span, nullptr, __ATOMIC_ACQUIRE);
  if (before != nullptr) __atomic_fetch_sub(&open_slots, entry.slots, __ATOMIC_RELAXED);
  return is_span(before) ? before : nullptr;
}

SlabHeader* take_excess() {
  for (unsigned looks = 0; looks < kEntries && !may_be_open(relaxed(open_slots)); ++looks) {
    const unsigned number = __atomic_fetch_add(&next_excess, 1, __ATOMIC_RELAXED) % kEntries;
    if (SlabHeader* span = close_entry(number)) return span;
  }
  return nullptr;
}

SlabHeader* keep_in_closed(SlabHeader*& entry, SlabHeader* header) {
  const unsigned slots = header->slots;
  if (!may_be_open(relaxed(open_slots) + slots)) return header;
  __atomic_fetch_add(&open_slots, slots, __ATOMIC_RELAXED);
  SlabHeader* closed = nullptr;
  if (__atomic_compare_exchange_n(&entry, &closed, header, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    return nullptr;
  }
  __atomic_fetch_sub(&open_slots, slots, __ATOMIC_RELAXED);
  return header;
}

uint32_t cached_slots() {
  uint32_t sum = 0;
  for (unsigned number = 0; number < kEntries; ++number) {
    const Entry entry = entry_of(number);
    if (is_span(relaxed(entry.span))) sum += entry.slots;
  }
  return sum;
}

}  // namespace hummock::pages
