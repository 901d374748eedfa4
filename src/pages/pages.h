// Spans: runs of 64 KiB slots of regions of 32 MiB, and mappings of their own for larger blocks.
#ifndef HUMMOCK_PAGES_PAGES_H
#define HUMMOCK_PAGES_PAGES_H

#include "base/own_line.h"
#include "pages/region_map.h"

namespace hummock::pages {

inline constexpr unsigned kSlotsPerHugePage = 32;
inline constexpr unsigned kHugePages = kSlotsPerRegion / kSlotsPerHugePage;
inline constexpr size_t kHugePageSize = kSlotsPerHugePage * kSlotSize;
// A region has its headers in the first slot and, most often, nothing in the last: above it a block gets its
// own mapping.
inline constexpr unsigned kMaxSpanSlots = kSlotsPerRegion - 2;

struct Span {
  SlabHeader* header;  // null: no memory
  bool zeroed;         // all of it reads zero
};

// `slots` 1…kMaxSpanSlots adjacent slots, the first at a multiple of `align_slots` (a power of two ≤ 256;
// where it is not 1, no more slots than stand behind the first such place, or behind the first huge page).
// The header has kind free; `start`, `slots` and `bytes` are filled. Bounded steps; no system call unless the
// address space must grow. Thread-safe.
Span allocate_span(unsigned slots, unsigned align_slots = 1);

// Takes back what allocate_span gave.
void release_span(SlabHeader* header);

// Makes a span shorter or longer where it stands. grow is false when the slots behind it are not free.
void shrink_span(SlabHeader* header, unsigned slots);
bool grow_span(SlabHeader* header, unsigned slots);

// A mapping of its own: at least `size` bytes at a multiple of `align` (and of 32 MiB); *zeroed: they read
// zero. Null header when the system has no room.
SlabHeader* allocate_huge(size_t size, size_t align, bool* zeroed);
void release_huge(SlabHeader* header);
// The header of the block with its new size, moved if need be; null when the system refused, and the
// block is as it was.
SlabHeader* resize_huge(SlabHeader* header, size_t size);
// The block of a span, which is gone then, in a mapping of its own with room for more; null as above. Its
// memory is moved, not copied, where the system can.
SlabHeader* move_to_huge(SlabHeader* span, size_t size);
// So many guarded blocks more, and the bytes that their owners may use: they count with those that have
// mappings of their own, as each has.
void count_guarded(ptrdiff_t blocks, ptrdiff_t bytes);
// Does more free memory wait than max(4 MiB, a sixteenth of what is in use)?
bool has_much_dirty();

// ---- Giving memory back -------------------------------------------------------------------------

// True when free memory waits to be given back, or huge pages to be made: slow paths then call tick().
extern uint32_t dirty_slots;   // atomic, relaxed; free slots with memory behind them, cached ones apart
extern bool collapse_pending;  // atomic, relaxed: a hint
inline bool tick_pending() {
  return relaxed(dirty_slots) != 0 || relaxed(collapse_pending);
}
// True when a tick left something that is due, so that the next is worth while at once.
extern base::OwnLine<bool> behind;  // atomic, relaxed
inline bool is_behind() {
  return relaxed(behind.value);
}
// Gives back what has been free for long enough, or is beyond the budget: some of it, with a few system
// calls; see also collapse_one(). Cheap when nothing is due. True when a while had passed since the last.
bool tick(uint64_t now_ms);
// Makes all memory due that is free now: it goes with the next ticks.
void ask_trim(uint64_t now_ms);
// Gives back all but `keep` bytes. True when something was.
bool purge_all(size_t keep);

// Parts of a slab that is in use, a bit each (part_bytes): is their memory worth giving back, and can it be?
// Not where it stands on a huge page. Bytes that went.
bool can_purge_inside(const SlabHeader* slab);
size_t purge_inside(const SlabHeader* slab, uint16_t pages);
// The slab stands on small pages from now on, if a huge page was not what the user asked for. False: it was.
bool split_huge_page(const SlabHeader* slab);

// Bytes in use, of spans and mappings; but for what slabs have never handed out. A look without a lock.
extern size_t used_slots;                            // atomic, relaxed: written under the page heap's lock
extern size_t huge_bytes;                            // of mappings of their own; likewise
extern base::OwnLine<size_t> untouched_small_pages;  // atomic, relaxed; may be ahead of used_slots
inline size_t in_use_bytes() {
  const size_t spans = relaxed(used_slots) * kSlotSize;
  const size_t untouched = relaxed(untouched_small_pages.value) * kSmallPage;
  return relaxed(huge_bytes) + (spans > untouched ? spans - untouched : 0);
}
// The same as it was lately, to 1 MiB or a part in 64: who asks for bounds must not wait for a line that all
// threads write to.
extern base::OwnLine<size_t> in_use_lately;  // atomic, relaxed: written under the page heap's lock
// max(least, 1/part of what is in use): of what may wait, be kept or be hidden. Bytes.
inline size_t bound_by_use(size_t least, size_t part) {
  const size_t share = relaxed(in_use_lately.value) / part;
  return share > least ? share : least;
}
// Small pages of slabs that no block was cut from yet; changed by so many. Those that may have memory, of
// spans that were used before, are `hidden`: no purge finds them. Any thread.
void note_untouched(ptrdiff_t pages, bool hidden);
// Is more hidden than max(12 MiB, a quarter of what is in use), and what is regretted (pages/regret.h)?
bool hides_much();

// ---- Figures ------------------------------------------------------------------------------------

struct Totals {
  size_t mapped, used, dirty, purged, peak, huge_blocks, huge_bytes;
  size_t pinned, advised, refusals;  // huge pages: see backing.h
  size_t headers;                    // memory of the regions' headers
  size_t kept;                       // what of `dirty` no tick gives back
  size_t reused;                     // so far; near caches' spans apart, which their users count
};
Totals totals();

// Calls visit(header, context) for each header of each region. Takes no lock: the headers are read as they
// are. Huge blocks are not among them; totals() counts those.
void visit_headers(void (*visit)(const SlabHeader*, void*), void* context);

// A block with a mapping of its own.
struct HugeBlock {
  char* start;
  size_t bytes;
  const heap::UserHeap* heap;  // null: of none
};
// Those that stand above an address, by address: as many of the lowest as there is room for, and how many
// those are. Under a lock: a step for each mapping.
unsigned list_huge(const char* above, HugeBlock* out, unsigned most);

// All headers of all regions one after the other, while others may add regions.
class Headers {
 public:
  SlabHeader* next();  // null: no more

 private:
  struct Region* region_ = nullptr;
  unsigned slot_ = 0;
  bool begun_ = false;
};

// The large block in which `p` lies, or no place: for messages about wrong pointers.
struct Extent {
  char* start;
  size_t bytes;
};
Extent enclosing_span(const void* p);

// For fork: all locks of this layer.
void lock_all();
void unlock_all();
void reset_all();

// When no other thread is left: was one stopped inside a lock of this layer?
bool is_locked();
// Gives all regions and records back. Nothing of the library may be used after.
void unmap_all();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_PAGES_H
