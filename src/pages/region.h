// The page heap's own records. Everything here is guarded by `page_lock`.
#ifndef HUMMOCK_PAGES_REGION_H
#define HUMMOCK_PAGES_REGION_H

#include "base/bits.h"
#include "base/list.h"
#include "os/lock.h"
#include "os/os.h"
#include "pages/pages.h"

namespace hummock::pages {

struct Region;

// 32 slots of 64 KiB. A slot is used, or free and dirty (memory behind it), or free and clean (reads
// zero). Invariant: in the free list of its longest run, and in the purge queue if dirty & ~used ≠ 0.
struct HugePage {
  uint32_t used;
  uint32_t dirty;  // may hold memory or contents; used slots count as dirty
  uint8_t run;     // longest run of free slots = the free list it stands in
  uint8_t number;  // in its region
  bool queued;
  uint64_t since;  // when it entered the purge queue, ms; kNow until the next tick
  Region* region;
  HugePage* next;
  HugePage* prev;
  HugePage* purge_next;
  HugePage* purge_prev;

  bool pinned() const;  // in a region of large pages: its memory stays
  uint32_t purgeable() const { return pinned() ? 0 : dirty & ~used; }
};

inline constexpr uint64_t kNow = ~uint64_t{0};

// 32 MiB (less where the system is tight) of address space; slot 0 holds the headers.
struct Region {
  char* base;
  unsigned huge_pages;  // 16, or fewer
  bool pinned;          // it has all its memory, and keeps it: large pages where they cannot be cut
  Region* next;         // all regions, newest first; atomic so that visitors need no lock
  uint32_t whole_free;  // bit i: huge page i is wholly free
  HugePage page[kHugePages];

  SlabHeader* header(unsigned slot) { return reinterpret_cast<SlabHeader*>(base) + slot; }
};

inline bool HugePage::pinned() const {
  return os::kCanPin && region->pinned;
}

using PurgeQueue = base::List<HugePage, &HugePage::purge_next, &HugePage::purge_prev>;

extern os::Lock page_lock;
extern Region* regions;         // atomic: release by add_region, acquire by visitors
extern PurgeQueue purge_queue;  // oldest first, those not yet stamped last
extern size_t used_slots;
extern size_t peak_bytes;
extern size_t mapped_bytes;
extern size_t purged_slots;
extern uint32_t clean_taken;  // slots taken that had no memory; see purge.cc

// Around every change of `used` or `dirty`: off its free list before, where it belongs now after.
void unlist(HugePage* page);
void refile(HugePage* page);

bool dirty_over_budget();

// Back to the page heap, past the cache.
void give_span(SlabHeader* header);

// The bytes of huge blocks changed: for the peak. Takes page_lock itself.
void note_huge_bytes(size_t bytes);

void huge_lock();
void huge_unlock();
void huge_reset();
bool huge_is_locked();
void huge_totals(Totals* out);
void visit_huge(void (*visit)(const SlabHeader*, void*), void* context);
SlabHeader* enclosing_huge(const void* p);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGION_H
