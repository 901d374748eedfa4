// Free memory of mappings of very large blocks. It waits for the next such block, or for its own block to
// grow, and counts in the budget of dirty memory.
//
// The mapping of a freed block is *kept*. Its header has kind free, and rests_since says since when. It
// serves the next block that is not longer than it. What remains behind that block is its *tail*; rests_since
// is then the tail's time.
//
// The system may fail to unmap a mapping between two others, because it has no mapping left for the two
// parts. Such a mapping is *stuck*: it has no memory, and serves the next block that it fits.
#ifndef HUMMOCK_PAGES_KEPT_H
#define HUMMOCK_PAGES_KEPT_H

#include "pages/region.h"

namespace hummock::pages {

inline constexpr size_t kHeaders = kSlotSize;
inline constexpr size_t kFront = kSlotSize;  // inaccessible, before most headers

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
// How many of the bytes behind a block become a tail. Less than a slot stays the block's.
inline size_t tail_worth(size_t bytes) {
  return bytes < kSlotSize ? 0 : bytes;
}

// Called with mappings_lock held. set_tail returns false if there are too many; the caller then unmaps it.
// take_tail returns the tail's length.
bool set_tail(SlabHeader* header, size_t bytes);
size_t take_tail(SlabHeader* header);
// Returns a mapping that the caller must unmap instead, once the lock is released, or null.
SlabHeader* keep(SlabHeader* header);

// Takes a kept mapping for a block of so many bytes, and returns its tail; the block may be a little longer.
// Null: there is none. reuse_whole takes only a mapping that was long enough.
SlabHeader* reuse(size_t bytes, size_t* tail);
SlabHeader* reuse_whole(size_t bytes, size_t* tail);
// Takes a stuck mapping, which reads as zeros and may be longer, or returns null.
SlabHeader* take_stuck(size_t bytes);

// Unmapping can fail when the process has no mappings left. Then this purges the memory and returns false.
bool unmap_or_purge(void* address, size_t size);
// Unmaps a free block's mapping; if the system refuses, it becomes stuck.
void unmap_block(SlabHeader* header);
void cut_tail(char* tail, size_t bytes, bool advised);
// Before, the mapping with its tail had `before` bytes behind its headers.
void note_resized(const SlabHeader* header, size_t before, size_t bytes);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_KEPT_H
