#include "pages/span_cache.h"

#include "pages/region.h"

namespace hummock::pages {

static_assert(kNearLengths * sizeof(void*) == 64 || sizeof(void*) != 8);
alignas(64) SlabHeader* cache_entries[kEntries];

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

// Spans taken from the far cache so far, by length - 1: figures. Two threads that count at once may count
// once.
size_t far_taken[kFarLengths];

unsigned far_entry(unsigned slots) {
  return kNearEntries + slots - 1;
}
unsigned length_of(unsigned entry) {
  return entry >= kNearEntries ? entry - kNearEntries + 1 : entry % kNearLengths + 1;
}

}  // namespace

SlabHeader* close_entry(unsigned number) {
  SlabHeader*& entry = cache_entries[number];
  if (relaxed(entry) == nullptr) return nullptr;
  SlabHeader* before = __atomic_exchange_n(&entry, nullptr, __ATOMIC_SEQ_CST);
  if (before != nullptr) __atomic_fetch_sub(&open_slots.value, length_of(number), __ATOMIC_RELAXED);
  return is_span(before) && take_cached(before) ? before : nullptr;
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

// The entry led to a span that had gone elsewhere, with another length, and was cached there.
void leave_entry(unsigned entry, SlabHeader* span) {
  SlabHeader* expected = span;
  __atomic_compare_exchange_n(&cache_entries[entry], &expected, kOpen, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  release_span(span);
}

SlabHeader* keep_in_other(unsigned entry, SlabHeader* before, SlabHeader* span) {
  const unsigned slots = length_of(entry);
  bool may = true;
  if (before == nullptr) {
    may = relaxed(open_slots.value) + slots <= most_open();
    if (may) __atomic_fetch_add(&open_slots.value, slots, __ATOMIC_RELAXED);
  }
  SlabHeader* expected = before;
  if (may && __atomic_compare_exchange_n(&cache_entries[entry], &expected, span, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
    return is_span(before) && take_cached(before) ? before : nullptr;
  if (may && before == nullptr) __atomic_fetch_sub(&open_slots.value, slots, __ATOMIC_RELAXED);
  // Another entry may lead to it, from where somebody took it.
  return take_cached(span) ? span : nullptr;
}

SlabHeader* take_far(unsigned slots) {
  if (slots > kFarLengths) return nullptr;
  SlabHeader* span = take_entry(far_entry(slots));
  if (span == nullptr) return nullptr;
  if (span->slots != slots) {
    leave_entry(far_entry(slots), span);
    return nullptr;
  }
  set_relaxed(far_taken[slots - 1], relaxed(far_taken[slots - 1]) + 1);
  return span;
}

SlabHeader* keep_far(SlabHeader* span) {
  if (span->slots > kFarLengths) return span;
  const unsigned entry = far_entry(span->slots);
  set_relaxed(span->entry, uint32_t{entry});
  Kind cached = Kind::cached;
  __atomic_store(&span->kind, &cached, __ATOMIC_SEQ_CST);
  SlabHeader* before = look_at_entry(entry);
  return before == span ? nullptr : keep_in_other(entry, before, span);
}

void empty_entry(unsigned number) {
  if (SlabHeader* span = close_entry(number)) give_span(span);
}

void empty_caches() {
  for (unsigned i = 0; i < kEntries; ++i) empty_entry(i);
}

uint32_t cached_slots() {
  uint32_t sum = 0;
  for (unsigned entry = 0; entry < kEntries; ++entry) {
    const SlabHeader* span = relaxed(cache_entries[entry]);
    // Two entries may lead to one span.
    const bool there = is_span(span) && kind_of(span) == Kind::cached;
    if (there && relaxed(span->entry) == entry) sum += length_of(entry);
  }
  return sum;
}

size_t far_reused() {
  size_t sum = 0;
  for (unsigned i = 0; i < kFarLengths; ++i) sum += relaxed(far_taken[i]) * (i + 1);
  return sum;
}

}  // namespace hummock::pages
