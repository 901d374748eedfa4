// Spans freed a moment ago, at most one of each length, so that threads which use and free blocks of
// 64 KiB … 2 MiB do not go through the page heap each time, nor meet at its lock.
//
// An entry is null or a span that nobody else knows: whoever exchanges it out owns it. Cached spans
// count as used in the page heap and as dirty in the figures; ticks put them back.
#ifndef HUMMOCK_PAGES_SPAN_CACHE_H
#define HUMMOCK_PAGES_SPAN_CACHE_H

#include "pages/pages.h"

namespace hummock::pages {

// A span of exactly this length, or null.
SlabHeader* take_cached(unsigned slots);

// Keeps the span. Returns the one that must go back to the page heap for it (itself when it is too
// long), or null.
SlabHeader* keep_cached(SlabHeader* header);

// The caller owns what stood at a position 0 … kCachePositions - 1; null if nothing.
inline constexpr unsigned kCachePositions = kSlotsPerHugePage + 1;
SlabHeader* empty_cache(unsigned position);

uint32_t cached_slots();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_SPAN_CACHE_H
