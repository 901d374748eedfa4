// Caches of spans that were freed a moment ago. With them, threads that allocate and free blocks of
// 64 KiB … 4 MiB need not go through the page heap and its lock each time. A cache has one entry for each
// length. *Near* caches, one for each processor, hold up to 512 KiB; the *far* cache for all threads holds
// longer spans, and those for which the near cache has no place.
//
// A span's kind says whose it is:
//   large, slab   a program's
//   cached        nobody's. At least one entry leads to it. The thread that exchanges `cached` owns the span
//   free          of the thread that took it out, or in the page heap
// An entry is closed (null), open and empty (kOpen), or leads to a span. It goes on leading there when the
// span is handed out. When the same block comes back, only the kind changes. So malloc and free make one
// exchange each, and the one of free also tells when two threads free a block at once. An entry may lead to a
// span that is somebody else's by now; then it counts as empty.
//
// Who makes a span `cached` looks at the entry afterwards. Who takes a span's address out of an entry looks
// at the span's kind afterwards. All four accesses are seq_cst, so one of the two sees the other, and no
// cached span is left without an entry: tests/model/cache.pml.
//
// Any thread's tick can return any cached span, so none is lost with a thread that sleeps or has ended. The
// lengths of all entries that are not closed add up to at most max(4 MiB, 1/32 of what is in use); so nothing
// is counted when a span comes or goes. Ticks close entries in turn, and so do frees when less is in use than
// before. The next free opens them again. A cached span counts as used in the page heap, and as dirty in the
// figures.
#ifndef HUMMOCK_PAGES_SPAN_CACHE_H
#define HUMMOCK_PAGES_SPAN_CACHE_H

#include "pages/pages.h"

namespace hummock::pages {

inline constexpr unsigned kNearLengths = 8;
inline constexpr unsigned kNearCaches = 32;
inline constexpr unsigned kNearEntries = kNearCaches * kNearLengths;
inline constexpr unsigned kFarLengths = 64;
inline constexpr unsigned kEntries = kNearEntries + kFarLengths;

// First each near cache's entries, on a line of their own, then the far cache's; by length - 1. Atomic.
extern SlabHeader* cache_entries[kEntries];

inline SlabHeader* const kOpen = reinterpret_cast<SlabHeader*>(1);
inline bool is_span(const SlabHeader* entry) {
  return reinterpret_cast<uintptr_t>(entry) > 1;
}

// Makes a cached span a free one. True: the caller owns it now. acquire: pairs with the release of whoever
// made it cached, so that we see the header as it was left. First a look: an exchange that fails takes the
// line from whoever has the span now.
inline bool take_cached(SlabHeader* span) {
  Kind cached, free = Kind::free;
  __atomic_load(&span->kind, &cached, __ATOMIC_SEQ_CST);
  if (cached != Kind::cached) return false;
  return __atomic_compare_exchange(&span->kind, &cached, &free, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// Takes the span that the entry leads to, or null. If its length is not the entry's, the caller passes it to
// leave_entry(). The span is free until the caller makes it large, so that a second free of its last block is
// reported meanwhile.
inline SlabHeader* take_entry(unsigned entry) {
  SlabHeader* span = relaxed(cache_entries[entry]);
  return is_span(span) && take_cached(span) ? span : nullptr;
}
void leave_entry(unsigned entry, SlabHeader* span);

// Makes a large block's span a cached one, for this entry. False: it is no large block's any more, because
// another thread frees it, too. Otherwise the caller looks at the entry next.
inline bool make_cached(SlabHeader* span, unsigned entry) {
  set_relaxed(span->entry, uint32_t{entry});
  Kind large = Kind::large, cached = Kind::cached;
  return __atomic_compare_exchange(&span->kind, &large, &cached, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
inline SlabHeader* look_at_entry(unsigned entry) {
  return __atomic_load_n(&cache_entries[entry], __ATOMIC_SEQ_CST);
}
// The entry led to `before` and not to the span, which is cached already, and so others' to take. Sees that
// the entry leads to it. Returns a span that was there, or the same one if the entry cannot be opened; the
// caller owns it. Null: neither.
SlabHeader* keep_in_other(unsigned entry, SlabHeader* before, SlabHeader* span);

// The near cache's entry for a length of at most kNearLengths slots.
inline unsigned near_entry(unsigned processor, unsigned slots) {
  return processor % kNearCaches * kNearLengths + slots - 1;
}

// A span of exactly this length from the far cache, which the caller owns, or null. And the way back, for
// spans of any length; returns what the caller owns afterwards, or null.
SlabHeader* take_far(unsigned slots);
SlabHeader* keep_far(SlabHeader* span);

// Closes an entry, 0 … kEntries - 1. The caller owns the span that was there; null: there was none.
SlabHeader* close_entry(unsigned number);

// Closes entries in turn if more is open than may be, or sometimes if a span was refused because nothing more
// could be opened. The caller owns the span that was in one of them; null: there was none.
SlabHeader* take_excess(bool refused);

// Closes an entry, or all, and gives the cached spans to the page heap, where they are free then.
void empty_entry(unsigned number);
void empty_caches();

// The slots of all cached spans.
uint32_t cached_slots();
// Slots that were taken from the far cache so far.
size_t far_reused();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_SPAN_CACHE_H
