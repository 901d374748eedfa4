// Spans freed a moment ago, so that threads which use and free blocks of 64 KiB … 4 MiB do not go through
// the page heap each time, nor meet at its lock. A cache has one entry a length: the near ones, which few
// threads share or none, up to 512 KiB, and one for all, to which goes what finds no place there.
//
// An entry is closed (null), open and empty (kOpen), or a span that nobody else knows: whoever exchanges it
// out owns it. So any thread's tick can put any cached span back, and none is lost with a thread that sleeps
// or ended. Open entries' lengths together are at most max(4 MiB, 1/32 of what is in use), whether there is a
// span or not: so there is nothing to count when one comes or goes. Ticks close them in turn, and so do frees
// when less is in use than there was; they open at the next free. Cached spans count as used in the page heap
// and as dirty in the figures.
#ifndef HUMMOCK_PAGES_SPAN_CACHE_H
#define HUMMOCK_PAGES_SPAN_CACHE_H

#include "pages/pages.h"

namespace hummock::pages {

inline constexpr unsigned kNearLengths = 8;
inline constexpr unsigned kNearCaches = 32;
inline constexpr unsigned kFarLengths = 64;

// By length - 1; atomic.
struct alignas(64) NearCache {
  SlabHeader* entry[kNearLengths];
};
struct FarEntry {
  SlabHeader* span;
  size_t taken;  // spans, so far: a figure, two that count at once may count once
};
extern NearCache near_caches[kNearCaches];
extern FarEntry far_cache[kFarLengths];

inline SlabHeader* const kOpen = reinterpret_cast<SlabHeader*>(1);
inline bool is_span(const SlabHeader* entry) {
  return reinterpret_cast<uintptr_t>(entry) > 1;
}

// Takes what the entry holds, or null.
inline SlabHeader* take_entry(SlabHeader*& entry) {
  SlabHeader* span = relaxed(entry);
  if (!is_span(span)) return nullptr;
  // acquire: pairs with the release where it was kept, so that we see the header as it was left.
  return __atomic_compare_exchange_n(&entry, &span, kOpen, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
             ? span
             : nullptr;
}

// Keeps the span if the entry can be opened. Returns the one that is the caller's instead (what stood there,
// or the same), or null.
SlabHeader* keep_in_closed(SlabHeader*& entry, SlabHeader* header);
inline SlabHeader* keep_entry(SlabHeader*& entry, SlabHeader* header) {
  SlabHeader* before = relaxed(entry);
  if (before == nullptr) return keep_in_closed(entry, header);
  if (!__atomic_compare_exchange_n(&entry, &before, header, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return header;
  return is_span(before) ? before : nullptr;
}

// A span of exactly this length from a near cache, or null; and back there. kNearLengths at most.
inline SlabHeader* take_near(unsigned cache, unsigned slots) {
  return take_entry(near_caches[cache].entry[slots - 1]);
}
inline SlabHeader* keep_near(unsigned cache, SlabHeader* header) {
  return keep_entry(near_caches[cache].entry[header->slots - 1], header);
}

// The same of the cache for all, and any length.
inline SlabHeader* take_far(unsigned slots) {
  if (slots > kFarLengths) return nullptr;
  FarEntry& entry = far_cache[slots - 1];
  SlabHeader* span = take_entry(entry.span);
  if (span != nullptr) set_relaxed(entry.taken, relaxed(entry.taken) + 1);
  return span;
}
inline SlabHeader* keep_far(SlabHeader* header) {
  return header->slots <= kFarLengths ? keep_entry(far_cache[header->slots - 1].span, header) : header;
}

// Closes an entry, 0 … kEntries - 1. The caller owns what stood there; null if nothing.
inline constexpr unsigned kEntries = kNearCaches * kNearLengths + kFarLengths;
SlabHeader* close_entry(unsigned number);

// When more is open than may be, or a span was refused as nothing more could be opened: entries are closed in
// turn, and what stood in one of them is the caller's. Null: nothing did.
SlabHeader* take_excess(bool refused);

// In all the caches.
uint32_t cached_slots();
// Slots that were taken from the far cache so far.
size_t far_reused();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_SPAN_CACHE_H
