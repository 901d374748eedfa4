// Caches of spans that were freed a moment ago. With them, threads that allocate and free blocks of
// 64 KiB … 4 MiB need not go through the page heap and its lock each time. A cache has one entry for each
// length. *Near* caches, each used by few threads or one, hold up to 512 KiB; the *far* cache for all threads
// holds longer spans, and those for which the near cache has no place.
//
// An entry is closed (null), open and empty (kOpen), or a span that nobody else knows. The thread that
// exchanges the span out owns it. So any thread's tick can return any cached span, and none is lost with a
// thread that sleeps or has ended. The lengths of all open entries, with a span or without, add up to at most
// max(4 MiB, 1/32 of what is in use); so nothing is counted when a span comes or goes. Ticks close entries in
// turn, and so do frees when less is in use than before. The next free opens them again. A cached span counts
// as used in the page heap, and as dirty in the figures.
#ifndef HUMMOCK_PAGES_SPAN_CACHE_H
#define HUMMOCK_PAGES_SPAN_CACHE_H

#include "pages/pages.h"

namespace hummock::pages {

inline constexpr unsigned kNearLengths = 8;
inline constexpr unsigned kNearCaches = 32;
inline constexpr unsigned kFarLengths = 64;

// Entries are indexed by length - 1, and atomic.
struct alignas(64) NearCache {
  SlabHeader* entry[kNearLengths];
};
struct FarEntry {
  SlabHeader* span;
  size_t taken;  // spans so far: a figure; two threads that count at once may count once
};
extern NearCache near_caches[kNearCaches];
extern FarEntry far_cache[kFarLengths];

inline SlabHeader* const kOpen = reinterpret_cast<SlabHeader*>(1);
inline bool is_span(const SlabHeader* entry) {
  return reinterpret_cast<uintptr_t>(entry) > 1;
}

// Takes the entry's span, or null.
inline SlabHeader* take_entry(SlabHeader*& entry) {
  SlabHeader* span = relaxed(entry);
  if (!is_span(span)) return nullptr;
  // acquire: pairs with the release of keep_entry, so that we see the header as it was left.
  return __atomic_compare_exchange_n(&entry, &span, kOpen, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
             ? span
             : nullptr;
}

// Keeps the span if the entry is open or can be opened. Returns a span that the caller owns from now on (the
// one that was there before, or the same one), or null.
SlabHeader* keep_in_closed(SlabHeader*& entry, SlabHeader* header);
inline SlabHeader* keep_entry(SlabHeader*& entry, SlabHeader* header) {
  SlabHeader* before = relaxed(entry);
  if (before == nullptr) return keep_in_closed(entry, header);
  if (!__atomic_compare_exchange_n(&entry, &before, header, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return header;
  return is_span(before) ? before : nullptr;
}

// Take a span of exactly this length from a near cache (or null), and put one there. At most kNearLengths
// slots.
inline SlabHeader* take_near(unsigned cache, unsigned slots) {
  return take_entry(near_caches[cache].entry[slots - 1]);
}
inline SlabHeader* keep_near(unsigned cache, SlabHeader* header) {
  return keep_entry(near_caches[cache].entry[header->slots - 1], header);
}

// The same for the far cache, and for any length.
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

// Closes an entry, 0 … kEntries - 1. The caller owns the span that was there; null: there was none.
inline constexpr unsigned kEntries = kNearCaches * kNearLengths + kFarLengths;
SlabHeader* close_entry(unsigned number);

// Closes entries in turn if more is open than may be, or sometimes if a span was refused because nothing more
// could be opened. The caller owns the span that was in one of them; null: there was none.
SlabHeader* take_excess(bool refused);

// The slots of all cached spans.
uint32_t cached_slots();
// Slots that were taken from the far cache so far.
size_t far_reused();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_SPAN_CACHE_H
