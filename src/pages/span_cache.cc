#include "pages/span_cache.h"

namespace hummock::pages {

NearCache near_caches[kNearCaches];

namespace {

constexpr uint32_t kMostSlots = 64;  // 4 MiB in all

SlabHeader* entries[kCachePositions];  // by length
uint32_t held;                         // slots in entries; atomic, relaxed: a bound and a figure

uint32_t next_turn;  // atomic, relaxed

}  // namespace

SlabHeader* empty_cache(unsigned position) {
  if (__atomic_load_n(&entries[position], __ATOMIC_RELAXED) == nullptr) return nullptr;
  // acquire: pairs with keep_cached's release, so that we see the header as it was left.
  SlabHeader* header = __atomic_exchange_n(&entries[position], nullptr, __ATOMIC_ACQUIRE);
  if (header != nullptr) __atomic_fetch_sub(&held, header->slots, __ATOMIC_RELAXED);
  return header;
}

SlabHeader* take_cached(unsigned slots) {
  return slots < kCachePositions ? empty_cache(slots) : nullptr;
}

SlabHeader* keep_cached(SlabHeader* header) {
  const unsigned slots = header->slots;
  if (slots >= kCachePositions) return header;
  __atomic_fetch_add(&held, slots, __ATOMIC_RELAXED);
  SlabHeader* before = __atomic_exchange_n(&entries[slots], header, __ATOMIC_ACQ_REL);
  if (before != nullptr) {
    __atomic_fetch_sub(&held, slots, __ATOMIC_RELAXED);
    return before;
  }
  if (__atomic_load_n(&held, __ATOMIC_RELAXED) <= kMostSlots) return nullptr;
  // Too much is held: one of the others goes, in turn. Two threads may come to the same; no matter.
  for (unsigned tries = 0; tries < kCachePositions; ++tries) {
    const unsigned turn = __atomic_fetch_add(&next_turn, 1, __ATOMIC_RELAXED) % kCachePositions;
    if (turn == slots) continue;
    if (SlabHeader* other = empty_cache(turn)) return other;
  }
  return nullptr;
}

uint32_t cached_slots() {
  uint32_t sum = __atomic_load_n(&held, __ATOMIC_RELAXED);
  for (const NearCache& cache : near_caches) {
    for (unsigned i = 0; i < kNearLengths; ++i) sum += relaxed(cache.entry[i]) != nullptr ? i + 1 : 0;
  }
  return sum;
}

}  // namespace hummock::pages
