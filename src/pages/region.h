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

// 32 slots of 64 KiB. A slot is used, or free and dirty (it has memory), or free and clean (no memory; it
// reads as zeros). Invariant: the page is in the purge queue if purgeable() ≠ 0. For where spans go see
// pages/runs.h.
struct HugePage {
  uint32_t used;
  uint32_t dirty;    // may hold memory; used slots count as dirty
  uint32_t unread;   // dirty slots that nobody has used: their memory came with the huge page and is zero
  uint32_t partial;  // free dirty slots that a slab had: only their first `gone.touched` pages have memory
  uint8_t number;    // in its region
  bool queued;
  bool collapsed;    // its memory is on a huge page, or a collapse is under way
  Backing backing;   // atomic, relaxed: read without the lock, as a hint
  uint32_t purging;  // slots that threads purge now: they count as used, so it is not as full as it looks
  uint32_t holes;    // of those, the ones in holes (pages/room.h)
  uint64_t since;    // when it entered the purge queue, ms; as of the last tick
  Region* region;
  HugePage* purge_next;
  HugePage* purge_prev;

  uint32_t warm() const { return dirty & ~used; }
  bool is_full() const { return __builtin_popcount(used) >= kFullSlots; }
  // The slots that may be purged now. A huge page is not split for a few.
  uint32_t purgeable() const {
    if (backing == Backing::small) return warm();
    if (backing == Backing::loose) return is_full() ? 0 : warm();
    return backing == Backing::whole && used == 0 ? dirty : 0;
  }
  char* start() const;

  static constexpr int kFullSlots = 29;
};

// 32 MiB of address space (less under tight limits); slot 0 holds the headers.
struct Region {
  char* base;
  unsigned huge_pages;  // 16, or fewer
  Region* next;         // all regions, newest first; atomic so that visitors need no lock
  char* copy;           // for the child, from before a fork until after it
  bool guarded;         // the last slot counts as used for ever, and is inaccessible until it is opened
  bool opened;          // see give_up_guard; atomic
  HugePage page[kHugePages];

  SlabHeader* header(unsigned slot) { return reinterpret_cast<SlabHeader*>(base) + slot; }
};

inline char* HugePage::start() const {
  return region->base + size_t{number} * (kSlotsPerHugePage * kSlotSize);
}

// Memory that was taken ahead of need: by huge_reserve, or because a page of 1 GiB holds many regions.
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
extern size_t high_used;     // the most slots in use lately, with huge blocks; see purge.cc
extern size_t reused_slots;  // dirty slots that were taken again, so far
extern size_t fresh_slots;   // clean slots that were taken, so far; atomic, relaxed
extern size_t kept_slots;    // free slots with memory that are not purgeable

// Call it after every change of `used`, `dirty` or `backing`: it puts the page into the purge queue, or takes
// it out.
void requeue(HugePage* page);
inline void refile(HugePage* page) {
  if ((page->purgeable() != 0) != page->queued) requeue(page);
}

// Call these around a change of a huge page: discount subtracts its part of dirty_slots and kept_slots before
// the change, count adds it afterwards.
void discount(const HugePage* page);
void count(const HugePage* page);

// Sets the backing of a huge page that is in its lists.
void set_backing(HugePage* page, Backing backing);

// Call it before a part of a huge page's memory is purged. Does nothing unless the page is loose.
void make_small(HugePage* page);

// ---- Slots that a thread purges, in purging.cc. With page_lock held, which is dropped between begin and
// end.

// They count as used until end_purging(): then as free again, and as clean if their memory is `gone`.
unsigned begin_purging(Region* region, unsigned slot, unsigned slots);
void end_purging(Region* region, unsigned slot, unsigned slots, bool gone);
// `begun`: what begin_purging() returned. False: a signal handler forked meanwhile, and this is the child,
// where they are free already and may be another thread's.
bool is_purging(unsigned begun);
// In the child of a fork: what any thread was purging is free again.
void end_purging_in_child();

// Brings in_use_lately up to date.
void tell_use();

bool dirty_over_budget();
// So many slots were freed, the longest span of them at `first`, and more is dirty than the budget. Purges
// what is too much, at most one and a half times as many, because the budget is smaller now. One system call;
// none if they are few and ticks are behind, because one call may free many spans. What is left is for ticks.
void purge_excess(unsigned slots, const SlabHeader* first, unsigned length);

// Adds a region that has room for a span of so many slots. No lock is held during the system call. False:
// there is no address space, or no memory.
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

// Returns a span to the page heap, past the caches.
void give_span(SlabHeader* header);
// The same for a span whose memory was moved away.
void give_lifted(SlabHeader* header);
// May the memory of its slots be moved elsewhere? Not if it is on hugetlb pages.
bool may_lift(SlabHeader* header);

// Notes a change of the bytes of huge blocks, or of the slots' worth of kept mappings. Takes page_lock
// itself.
void note_huge_bytes(size_t bytes, int32_t dirty);
// Unmaps the oldest kept mapping or tail, if it has waited since `before` or earlier, or if more than
// `most_dirty` slots are dirty. Returns the bytes. One system call.
size_t drop_kept(uint64_t before, size_t most_dirty);
void unmap_kept();
inline constexpr uint64_t kForEver = ~uint64_t{0};
// Unmaps all of them, when address space is short. False: there were none.
bool drop_all_kept();

void huge_at_fork(os::ForkStep step);
bool huge_is_locked();
void huge_totals(Totals* out);
Extent enclosing_huge(const void* p);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGION_H
