#include "pages/span_cache.h"

#include "pages/region.h"

namespace hummock::pages {

NearCache near_caches[kNearCaches];
FarEntry far_cache[kFarLengths];

namespace {

constexpr size_t kLeastOpen = 4 << 20;
constexpr size_t kShare = 32;

base::OwnLine<uint32_t> open_slots;  // lengths of all open entries; atomic, relaxed: a bound
unsigned next_excess;                // atomic, relaxed: entries are closed in turn
unsigned refusals;                   // atomic, relaxed: of spans, as nothing more could be opened

// One in this many refusals closes an entry: so what is in use now finds room in the end, and where more is
// in use than may be open, few spans come and go for it.
constexpr unsigned kRefusalsPerClose = 4;

uint32_t most_open() {
  return static_cast<uint32_t>(bound_by_use(kLeastOpen, kShare) / kSlotSize);
}

struct Entry {
  SlabHeader*& span;
  unsigned slots;
};
Entry entry_of(unsigned number) {
  const unsigned far = kNearCaches * kNearLengths;
  if (number >= far) return {far_cache[number - far].span, number - far + 1};
  return {near_caches[number / kNearLengths].entry[number % kNearLengths], number % kNearLengths + 1};
}

}  // namespace

SlabHeader* close_entry(unsigned number) {
  const Entry entry = entry_of(number);
  if (relaxed(entry.span) == nullptr) return nullptr;
  SlabHeader* before = __atomic_exchange_n(&entry.span, nullptr, __ATOMIC_SEQ_CST);
  if (before != nullptr) __atomic_fetch_sub(&open_slots.value, entry.slots, __ATOMIC_RELAXED);
  return is_span(before) && take_cached(before, Kind::free) ? before : nullptr;
}

SlabHeader* take_excess(bool refused) {
  uint32_t most = most_open();
  const uint32_t open = relaxed(open_slots.value);
  const bool turn = refused && __atomic_add_fetch(&refusals, 1, __ATOMIC_RELAXED) % kRefusalsPerClose == 0;
  if (turn && open != 0 && most >= open) most = open - 1;
  for (unsigned looks = 0; looks < kEntries && relaxed(open_slots.value) > most; ++looks) {
    const unsigned number = __atomic_fetch_add(&next_excess, 1, __ATOMIC_RELAXED) % kEntries;
    if (SlabHeader* span = close_entry(number)) return span;
  }
  return nullptr;
}

// The entry led to a span that had gone elsewhere, with another length, and is cached there. We own it now.
SlabHeader* leave_entry(SlabHeader*& entry, SlabHeader* span) {
  SlabHeader* expected = span;
  __atomic_compare_exchange_n(&entry, &expected, kOpen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  release_span(span);
  return nullptr;
}

SlabHeader* keep_in_other(SlabHeader*& entry, SlabHeader* before, SlabHeader* span, unsigned slots) {
  bool may = true;
  if (before == nullptr) {
    may = relaxed(open_slots.value) + slots <= most_open();
    if (may) __atomic_fetch_add(&open_slots.value, slots, __ATOMIC_RELAXED);
  }
  SlabHeader* expected = before;
  if (may && __atomic_compare_exchange_n(&entry, &expected, span, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return is_span(before) && take_cached(before, Kind::free) ? before : nullptr;
  if (may && before == nullptr) __atomic_fetch_sub(&open_slots.value, slots, __ATOMIC_RELAXED);
  // Another entry may lead to it, from where somebody took it.
  return take_cached(span, Kind::free) ? span : nullptr;
}

SlabHeader* take_far(unsigned slots) {
  if (slots > kFarLengths) return nullptr;
  FarEntry& entry = far_cache[slots - 1];
  SlabHeader* span = take_entry(entry.span, slots, Kind::free);
  if (span != nullptr) set_relaxed(entry.taken, relaxed(entry.taken) + 1);
  return span;
}

SlabHeader* keep_far(SlabHeader* span) {
  const unsigned slots = span->slots;
  if (slots > kFarLengths) return span;
  set_relaxed(span->entry, uint32_t{kNearCaches * kNearLengths + slots - 1});
  Kind cached = Kind::cached;
  __atomic_store(&span->kind, &cached, __ATOMIC_SEQ_CST);
  return keep_entry(far_cache[slots - 1].span, span, slots);
}

uint32_t cached_slots() {
  uint32_t sum = 0;
  for (unsigned number = 0; number < kEntries; ++number) {
    const Entry entry = entry_of(number);
    const SlabHeader* span = relaxed(entry.span);
    // Two entries may lead to one span.
    const bool there = is_span(span) && kind_of(span) == Kind::cached;
    if (there && relaxed(span->entry) == number) sum += entry.slots;
  }
  return sum;
}

size_t far_reused() {
  size_t sum = 0;
  for (unsigned i = 0; i < kFarLengths; ++i) sum += relaxed(far_cache[i].taken) * (i + 1);
  return sum;
}

}  // namespace hummock::pages
