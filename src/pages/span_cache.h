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

// Changes a cached span's kind. True: the caller owns it now. acquire: pairs with the release of whoever made
// it cached, so that we see the header as it was left. First a look: an exchange that fails takes the line
// from whoever has the span now.
inline bool take_cached(SlabHeader* span, Kind kind) {
  Kind cached;
  __atomic_load(&span->kind, &cached, __ATOMIC_SEQ_CST);
  if (cached != Kind::cached) return false;
  return __atomic_compare_exchange(&span->kind, &cached, &kind, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

SlabHeader* leave_entry(SlabHeader*& entry, SlabHeader* span);
// Takes the entry's span as one of this kind, or null.
inline SlabHeader* take_entry(SlabHeader*& entry, unsigned slots, Kind kind) {
  SlabHeader* span = relaxed(entry);
  if (!is_span(span) || !take_cached(span, kind)) return nullptr;
  return __builtin_expect(span->slots == slots, true) ? span : leave_entry(entry, span);
}

SlabHeader* keep_in_other(SlabHeader*& entry, SlabHeader* before, SlabHeader* span, unsigned slots);
// Sees that an open entry leads to the span, which is cached already, and so others' to take. Returns another
// span that was there, or the same one if the entry cannot be opened; the caller owns it. Null: neither.
inline SlabHeader* keep_entry(SlabHeader*& entry, SlabHeader* span, unsigned slots) {
  SlabHeader* before = __atomic_load_n(&entry, __ATOMIC_SEQ_CST);
  return __builtin_expect(before == span, true) ? nullptr : keep_in_other(entry, before, span, slots);
}

// Takes a large block's span of exactly this length from a near cache, or null. At most kNearLengths slots.
inline SlabHeader* take_near(unsigned cache, unsigned slots) {
  return take_entry(near_caches[cache].entry[slots - 1], slots, Kind::large);
}
// Makes a large block's span of so many slots a cached one, in this near cache. False: it is no large block's
// any more, because another thread frees it, too. Then sees to the entry, and sets *other to what
// keep_entry() returns.
inline bool keep_near(unsigned cache, SlabHeader* span, unsigned slots, SlabHeader** other) {
  set_relaxed(span->entry, uint32_t{cache * kNearLengths + slots - 1});
  Kind large = Kind::large, cached = Kind::cached;
  if (!__atomic_compare_exchange(&span->kind, &large, &cached, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return false;
  *other = keep_entry(near_caches[cache].entry[slots - 1], span, slots);
  return true;
}

// The same for the far cache, for any length, and for a free span that the caller owns.
SlabHeader* take_far(unsigned slots);
SlabHeader* keep_far(SlabHeader* span);

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
