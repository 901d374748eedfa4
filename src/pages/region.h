// The page heap's own records. Everything here is guarded by `page_lock`.
#ifndef HUMMOCK_PAGES_REGION_H
#define HUMMOCK_PAGES_REGION_H

#include "base/bits.h"
#include "base/list.h"
#include "os/lock.h"
#include "pages/backing.h"
#include "pages/pages.h"

namespace hummock::pages {

struct Region;

// 32 slots of 64 KiB. A slot is used, or free and dirty (memory behind it), or free and clean (no memory;
// reads zero). Invariant: in the purge queue if purgeable() ≠ 0. Where spans go: see pages/runs.h.
struct HugePage {
  uint32_t used;
  uint32_t dirty;   // may hold memory; used slots count as dirty
  uint32_t unread;  // dirty slots nobody ever had: memory came with the huge page, and reads zero
  uint8_t number;   // in its region
  bool queued;
  uint8_t busy;     // threads that purge some of it now: it is not as full as it looks
  bool collapsed;   // its room stands on a huge page, as far as it could be brought there
  Backing backing;  // atomic, relaxed: read without the lock, as a hint
  uint64_t since;   // when it entered the purge queue, ms; as of the last tick
  Region* region;
  HugePage* purge_next;
  HugePage* purge_prev;

  uint32_t warm() const { return dirty & ~used; }
  bool is_full() const { return __builtin_popcount(used) >= kFullSlots; }
  // The slots that may go back now: a huge page is not split for a few.
  uint32_t purgeable() const {
    if (backing == Backing::small) return warm();
    if (backing == Backing::loose) return is_full() ? 0 : warm();
    return backing == Backing::whole && used == 0 ? dirty : 0;
  }
  char* start() const;

  static constexpr int kFullSlots = 29;
};

// 32 MiB (less where the system is tight) of address space; slot 0 holds the headers.
struct Region {
  char* base;
  unsigned huge_pages;  // 16, or fewer
  Region* next;         // all regions, newest first; atomic so that visitors need no lock
  char* copy;           // for the child, from before a fork until after it
  bool guarded;         // the last slot is inaccessible, and in use for ever
  HugePage page[kHugePages];

  SlabHeader* header(unsigned slot) { return reinterpret_cast<SlabHeader*>(base) + slot; }
};

inline char* HugePage::start() const {
  return region->base + size_t{number} * (kSlotsPerHugePage * kSlotSize);
}

// Memory taken before it is needed: by huge_reserve, or because a page of 1 GiB holds many regions.
struct Reserve {
  char* next;
  size_t left;
  Backing backing;
};
extern os::Lock<os::Rank::reserve> reserve_lock;
extern Reserve reserve;  // guarded by reserve_lock, as are the next two
inline constexpr unsigned kMostGiants = 256;
extern char* giants[kMostGiants];  // pages of 1 GiB
extern unsigned giant_count;

using PurgeQueue = base::List<HugePage, &HugePage::purge_next, &HugePage::purge_prev>;

inline unsigned slot_of(const SlabHeader* header) {
  return static_cast<unsigned>((reinterpret_cast<uintptr_t>(header) & (kSlotSize - 1)) / sizeof(SlabHeader));
}

// The region's record, kept in the header of the slot that holds the headers.
inline Region* region_of(const SlabHeader* header) {
  const uintptr_t base = base::align_down(reinterpret_cast<uintptr_t>(header), kRegionSize);
  return reinterpret_cast<Region*>(static_cast<uintptr_t>(reinterpret_cast<SlabHeader*>(base)->remote));
}

extern os::Lock<os::Rank::growth> growth_lock;
extern os::Lock<os::Rank::page_heap> page_lock;
extern Region* regions;         // atomic: release by add_region, acquire by visitors
extern PurgeQueue purge_queue;  // oldest first
extern uint64_t tick_time;      // ms, of the last tick; atomic, relaxed: most frees read no clock
extern size_t peak_bytes;
extern size_t mapped_bytes;
extern size_t purged_slots;
extern size_t high_used;     // the most slots in use lately, huge blocks' too; see purge.cc
extern size_t reused_slots;  // free ones with memory behind them that were taken, so far
extern size_t kept_slots;    // free slots with memory behind them that are not purgeable

// After every change of `used`, `dirty` or `backing`: into the purge queue, or out of it.
void requeue(HugePage* page);
inline void refile(HugePage* page) {
  if ((page->purgeable() != 0) != page->queued) requeue(page);
}

// Around a change of a huge page that is not simply `small` before and after: what it adds to dirty_slots
// and kept_slots is taken off before, and added after.
void discount(const HugePage* page);
void count(const HugePage* page);

// Sets the backing of a huge page that stands in its lists.
void set_backing(HugePage* page, Backing backing);

// Call this before a part of a huge page's memory goes, if the page is in its lists and loose.
void make_small(HugePage* page);

// Brings in_use_lately up to date.
void tell_use();

bool dirty_over_budget();
// So many slots were freed, and that is too much: about as many go, and half as many, as the budget is
// smaller now. One system call.
void purge_excess(unsigned slots);

// A region more, with room for a span of so many slots. No lock is held during the system call. False: no
// address space, or no memory.
bool grow(unsigned slots);

// Calls change(page, mask, slots) for each huge page that the slots touch.
template <class Change>
void for_parts(Region* region, unsigned first, unsigned slots, Change change) {
  for (HugePage* page = &region->page[first / kSlotsPerHugePage]; slots != 0; ++page) {
    const unsigned bit = first % kSlotsPerHugePage, room = kSlotsPerHugePage - bit;
    const unsigned part = slots < room ? slots : room;
    change(page, base::low_mask(part) << bit, part);
    first += part;
    slots -= part;
  }
}

// Back to the page heap, past the cache.
void give_span(SlabHeader* header);
// The same of one whose memory was taken from behind it.
void give_lifted(SlabHeader* header);
// May the memory of its slots stand elsewhere? Not if it was set aside for their place.
bool may_lift(SlabHeader* header);

// The bytes of huge blocks changed, or so many slots' worth of mappings were kept. Takes page_lock itself.
void note_huge_bytes(size_t bytes, int32_t dirty);
// A mapping of a freed huge block, or a tail, goes: the oldest, if it was kept since `before` or earlier, or
// more than `most_dirty` slots are dirty. How many bytes went. One system call.
size_t drop_kept(uint64_t before, size_t most_dirty);
void unmap_kept();
inline constexpr uint64_t kForEver = ~uint64_t{0};
// All of them go, where address space is short; false: there were none.
bool drop_all_kept();
// Slots were given back for being over the budget. page_lock is not held.
void note_excess(uint32_t slots);
// Slots without memory were taken: with page_lock held, and without.
void count_clean(uint32_t slots);
void note_clean(uint32_t slots);

void huge_lock();
void huge_unlock();
void huge_reset();
bool huge_is_locked();
void huge_totals(Totals* out);
Extent enclosing_huge(const void* p);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGION_H
