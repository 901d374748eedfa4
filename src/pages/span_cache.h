// Spans freed a moment ago, so that threads which use and free blocks of 64 KiB … 2 MiB do not go through
// the page heap each time, nor meet at its lock. In two steps: near caches, shared by few threads or none,
// with one span of each length up to 512 KiB; and one cache for all, with one of each length up to 2 MiB.
//
// An entry is null or a span that nobody else knows: whoever exchanges it out owns it. So any thread's tick
// can put any cached span back, and none is lost with a thread that sleeps or ended. Cached spans count as
// used in the page heap and as dirty in the figures.
#ifndef HUMMOCK_PAGES_SPAN_CACHE_H
#define HUMMOCK_PAGES_SPAN_CACHE_H

#include "pages/pages.h"

namespace hummock::pages {

inline constexpr unsigned kNearLengths = 8;
inline constexpr unsigned kNearCaches = 32;
struct alignas(64) NearCache {
  SlabHeader* entry[kNearLengths];  // by length - 1; atomic
};
extern NearCache near_caches[kNearCaches];

// A span of exactly this length, or null.
inline SlabHeader* take_near(unsigned cache, unsigned slots) {
  SlabHeader*& entry = near_caches[cache].entry[slots - 1];
  if (relaxed(entry) == nullptr) return nullptr;
  // acquire: pairs with keep_near's release, so that we see the header as it was left.
  return __atomic_exchange_n(&entry, nullptr, __ATOMIC_ACQUIRE);
}

// Keeps the span. Returns the one that stood there before, the caller's now, or null.
inline SlabHeader* keep_near(unsigned cache, SlabHeader* header) {
  return __atomic_exchange_n(&near_caches[cache].entry[header->slots - 1], header, __ATOMIC_ACQ_REL);
}

// The same of the cache for all.
SlabHeader* take_cached(unsigned slots);

// Keeps the span. Returns the one that must go back to the page heap for it (itself when it is too
// long), or null.
SlabHeader* keep_cached(SlabHeader* header);

// The caller owns what stood at a position 0 … kCachePositions - 1; null if nothing.
inline constexpr unsigned kCachePositions = kSlotsPerHugePage + 1;
SlabHeader* empty_cache(unsigned position);

// In all the caches.
uint32_t cached_slots();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_SPAN_CACHE_H
