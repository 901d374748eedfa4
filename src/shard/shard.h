// Slabs that nobody owns: given away by their heap when full (or when its thread ended), found again by
// whoever needs a slab of the class, and given back whole by the free that returns the last live block.
// The protocol, with its states and its proof, is in docs/protocols.md.
#ifndef HUMMOCK_SHARD_SHARD_H
#define HUMMOCK_SHARD_SHARD_H

#include "slab/slab.h"

namespace hummock::shard {

// Gives an owned slab, in no list, away. After this call the caller may not touch it.
void give_away(SlabHeader* slab, heap::Heap* home);

// A shared slab of the class with blocks to be had, now owned by `heap`; null when none is listed. O(shards).
SlabHeader* adopt(unsigned size_class, heap::Heap* heap);

// Takes this very slab, if it is (still) shared. Then as adopt.
bool reclaim(SlabHeader* slab, heap::Heap* heap);

// To be called after a free into a shared slab replaced `old` and added `count`: when that made it worth
// adopting, or empty, it is listed or given back.
void after_remote_free(SlabHeader* slab, uint64_t old, uint32_t count);

// Looks at a slab whose queued flag the caller has just cleared, and does what its state asks for if it
// is shared.
void reconsider(SlabHeader* slab);

// Gives back the pages that hold nothing but free blocks of the slabs that are listed; each is `heap`'s for
// so long. Bytes that went.
size_t purge_listed(heap::Heap* heap);

void lock_all();
void unlock_all();
void reset_all();

}  // namespace hummock::shard

#endif  // HUMMOCK_SHARD_SHARD_H
