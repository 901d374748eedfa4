// Memory of blocks with a mapping of their own that nobody has: within the budget of dirty memory it waits
// for the next block, or for its own to grow.
//
// The mapping of a block that was freed is kept. Its header has kind free, and the time in rests_since. It
// serves the next block of at most its length; what is longer than that is the block's *tail*. A block with a
// tail has the tail's time in rests_since.
//
// A mapping that the system does not take back, because it has no record left for the two parts that others
// would fall into, is *stuck*: without memory, and the next block's that it fits.
#ifndef HUMMOCK_PAGES_KEPT_H
#define HUMMOCK_PAGES_KEPT_H

#include "pages/region.h"

namespace hummock::pages {

inline constexpr size_t kHeaders = kSlotSize;
inline constexpr size_t kFront = kSlotSize;  // inaccessible, before the headers of most

// The bytes of the mapping before the block.
inline size_t before_start(const SlabHeader* header) {
  return kHeaders + (header->fronted ? kFront : 0);
}

using HugeList = base::List<SlabHeader, &SlabHeader::huge_next, &SlabHeader::huge_prev>;

extern os::Lock<os::Rank::mappings> mappings_lock;
extern size_t resting_bytes;  // of kept mappings and tails; guarded by mappings_lock

// Bytes of the mapping behind the block; 0 but for a few. Guarded by mappings_lock.
inline uint64_t& tail_of(SlabHeader* header) {
  return header->remote;
}
// How many of so many bytes behind a block are a tail; a smaller part stays the block's.
inline size_t tail_worth(size_t bytes) {
  return bytes < kSlotSize ? 0 : bytes;
}

// Called with mappings_lock held. False: there are too many, the caller cuts it. The second: what it was.
bool set_tail(SlabHeader* header, size_t bytes);
size_t take_tail(SlabHeader* header);
// A mapping that must be unmapped instead, once the lock is released, or null.
SlabHeader* keep(SlabHeader* header);

// A kept mapping that serves a block of so many bytes, and what is its tail then; it may be a little longer.
// Null: none. The second: only one that had the length.
SlabHeader* reuse(size_t bytes, size_t* tail);
SlabHeader* reuse_whole(size_t bytes, size_t* tail);
// A mapping that was stuck, which reads as zeros and may be longer, or null.
SlabHeader* take_stuck(size_t bytes);

// Unmapping can fail where the map count is exhausted: then at least the memory goes back. False: it did.
bool unmap_or_purge(void* address, size_t size);
// Nobody's block; stuck if the system does not take it.
void unmap_block(SlabHeader* header);
void cut_tail(char* tail, size_t bytes, bool advised);
// The mapping, tail included, had `before` bytes behind its headers.
void note_resized(const SlabHeader* header, size_t before, size_t bytes);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_KEPT_H
