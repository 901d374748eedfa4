// Spans: runs of 64 KiB slots of regions of 32 MiB, and mappings of their own for larger blocks.
#ifndef HUMMOCK_PAGES_PAGES_H
#define HUMMOCK_PAGES_PAGES_H

#include "base/own_line.h"
#include "os/thread.h"
#include "pages/region_map.h"

namespace hummock::pages {

inline constexpr unsigned kSlotsPerHugePage = 32;
inline constexpr unsigned kHugePages = kSlotsPerRegion / kSlotsPerHugePage;
inline constexpr size_t kHugePageSize = kSlotsPerHugePage * kSlotSize;
// A region's first slot has the headers, and its last one is mostly a guard. A longer block gets its own
// mapping.
inline constexpr unsigned kMaxSpanSlots = kSlotsPerRegion - 2;

struct Span {
  SlabHeader* header;  // null: no memory
  bool zeroed;         // all of it reads as zeros
};

// Allocates `slots` (1…kMaxSpanSlots) adjacent slots, the first at a multiple of `align_slots` (a power of
// two ≤ 256; if it is not 1, at most as many slots as follow the first such place or the first huge page).
// The header has kind free; `start`, `slots` and `bytes` are filled in. Bounded steps; no system call unless
// a region must be added. Thread-safe.
Span allocate_span(unsigned slots, unsigned align_slots = 1);

// Frees a span of allocate_span.
void release_span(SlabHeader* header);

// Make a span shorter or longer in place. grow_span returns false if the slots behind it are not free.
void shrink_span(SlabHeader* header, unsigned slots);
bool grow_span(SlabHeader* header, unsigned slots);

// Allocates a block with a mapping of its own: at least `size` bytes at a multiple of `align` (and of 32
// MiB). *zeroed: they read as zeros. Null: the system refused.
SlabHeader* allocate_huge(size_t size, size_t align, bool* zeroed);
void release_huge(SlabHeader* header);
// Resizes the block, and moves it if necessary and if it `may_move`. Returns its header; null: not possible,
// or the system refused, and the block is unchanged.
SlabHeader* resize_huge(SlabHeader* header, size_t size, bool may_move);
// Moves the block of a span to a mapping of its own with room for more, and frees the span; null as above. It
// moves the memory instead of copying it, if the system can.
SlabHeader* move_to_huge(SlabHeader* span, size_t size);
// Counts so many more guarded blocks, and their usable bytes, with the blocks that have mappings of their
// own.
void count_guarded(ptrdiff_t blocks, ptrdiff_t bytes);
// Is more memory dirty than max(4 MiB, a sixteenth of what is in use)?
bool has_much_dirty();

// ---- Purging ------------------------------------------------------------------------------------

// True if memory is dirty, or a collapse is pending: then slow paths call purge_due().
extern uint32_t dirty_slots;   // atomic, relaxed: free slots with memory, without those of cached spans
extern bool collapse_pending;  // atomic, relaxed: a hint
inline bool any_due() {
  return relaxed(dirty_slots) != 0 || relaxed(collapse_pending);
}
// True if a tick left something that is due, so that the next slow path ticks.
extern base::OwnLine<bool> behind;  // atomic, relaxed
inline bool is_behind() {
  return relaxed(behind.value);
}
inline void set_behind(bool is) {
  if (is_behind() != is) set_relaxed(behind.value, is);
}
// The most system calls that a call makes, apart from those that bring or end its own memory. Functions with
// a parameter `calls` make at most so many, and subtract those that they made.
inline constexpr unsigned kMostCalls = 4;
// Purges some of what has been free for long enough or is beyond the budget; see also collapse_one(). Cheap
// when nothing is due. True if the last timed tick is a while ago.
bool purge_due(uint64_t now_ms, unsigned* calls);
// Makes all memory due that is free now: the next ticks purge it.
void ask_trim(uint64_t now_ms);
// Purges all but `keep` bytes. True if it purged something.
bool purge_all(size_t keep);

// Can parts of this slab be purged while it is in use? Not on a huge page. The second purges parts, a bit
// each (part_bytes), and returns the bytes.
bool can_purge_inside(const SlabHeader* slab);
size_t purge_inside(const SlabHeader* slab, uint16_t pages);
// The pages that purge_inside purges with so many system calls. Sets *calls to their number.
uint16_t pages_within(uint16_t pages, unsigned* calls);
// Puts the slab on small pages, unless the user asked for the huge page that it is on: then false.
bool split_huge_page(const SlabHeader* slab);

// Bytes in use, in spans and mappings, without the memory of slabs that was never handed out or was purged.
// Takes no lock.
extern size_t used_slots;  // atomic, relaxed: written under the page heap's lock
extern size_t huge_bytes;  // of mappings of their own; likewise
// Bytes of slabs in use that no block was carved of, or that were purged; and those of the former that may
// have memory from an earlier use of the slot, which no purge finds. Both atomic, relaxed; may be ahead of
// used_slots. They change together, so share a line.
struct Untouched {
  size_t bytes, hidden;
};
extern base::OwnLine<Untouched> untouched;
inline size_t in_use_bytes() {
  const size_t spans = relaxed(used_slots) * kSlotSize;
  const size_t bytes = relaxed(untouched.value.bytes);
  return relaxed(huge_bytes) + (spans > bytes ? spans - bytes : 0);
}
// A copy of that, exact to 1 MiB or a part in 64, so that bounds can be computed without waiting for a cache
// line that all threads write to.
extern base::OwnLine<size_t> in_use_lately;  // atomic, relaxed
// max(least, 1/part of what is in use), in bytes: the bound of what may be dirty, cached or hidden.
inline size_t bound_by_use(size_t least, size_t part) {
  const size_t share = relaxed(in_use_lately.value) / part;
  return share > least ? share : least;
}
// Changes these counts. Any thread.
void note_untouched(ptrdiff_t bytes, ptrdiff_t hidden = 0);
// Is more hidden than max(8 MiB, a sixteenth of what is in use) plus the regret of hidden pages?
bool hides_much();

// ---- Figures ------------------------------------------------------------------------------------

struct Totals {
  size_t mapped, used, dirty, purged, peak, huge_blocks, huge_bytes;
  size_t pinned, advised, refusals;  // huge pages: see backing.h
  size_t headers;                    // memory of the regions' headers
  size_t kept;                       // the part of `dirty` that no tick purges
  size_t reused;                     // so far; without near caches, whose threads count
};
Totals totals();

// Calls visit(header, context) for each header of each region. Takes no lock: the headers are read as they
// are. Blocks with mappings of their own are not among them; totals() counts those.
void visit_headers(void (*visit)(const SlabHeader*, void*), void* context);

// A block with a mapping of its own.
struct HugeBlock {
  char* start;
  size_t bytes;
  const heap::UserHeap* heap;  // null: of none
};
// Lists those above an address in order of address, the lowest first, at most `most`. Returns how many. Takes
// a lock, and a step for each mapping.
unsigned list_huge(const char* above, HugeBlock* out, unsigned most);

// Walks all headers of all regions, while others may add regions.
class Headers {
 public:
  SlabHeader* next();  // null: no more

 private:
  struct Region* region_ = nullptr;
  unsigned slot_ = 0;
  bool begun_ = false;
};

// The large block that contains `p`, or nothing: for messages about wrong pointers.
struct Extent {
  char* start;
  size_t bytes;
};
Extent enclosing_span(const void* p);

// All locks of this layer.
void at_fork(os::ForkStep step);

// When no other thread is left: was one stopped inside a lock of this layer?
bool is_locked();
// Unmaps all regions and records. Nothing of the library may be used afterwards.
void unmap_all();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_PAGES_H
