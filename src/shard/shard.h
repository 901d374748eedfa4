// Slabs that nobody owns. Their heap gave them away when they were full, or when its thread ended. A heap
// that needs a slab of the class adopts one; the free that returns the last live block destroys the slab. The
// protocol, with its states and its proof, is in docs/protocols.md.
#ifndef HUMMOCK_SHARD_SHARD_H
#define HUMMOCK_SHARD_SHARD_H

#include "slab/slab.h"

namespace hummock::shard {

// Gives an owned slab, in no list, away. After this call the caller may not touch it.
void give_away(SlabHeader* slab, heap::Heap* home);

// Takes a shared slab of the class that has free blocks, for `heap`; null if none is listed. O(shards).
SlabHeader* adopt(unsigned size_class, heap::Heap* heap);

// Takes this slab for `heap`, if it is still shared.
bool reclaim(SlabHeader* slab, heap::Heap* heap);

// Call it after a free into a shared slab replaced `old` and added `count`. Lists the slab if it is now worth
// adopting, or destroys it if it is empty. False: neither can be.
bool after_remote_free(SlabHeader* slab, uint64_t old, uint32_t count);

// Looks at a slab whose queued flag the caller has just cleared, and acts on its state if it is shared.
void reconsider(SlabHeader* slab);

// Purges pages that hold only free blocks in all listed slabs; `heap` owns each slab meanwhile. Returns the
// bytes that it purged.
size_t purge_listed(heap::Heap* heap);

void lock_all();
void unlock_all();
void reset_all();

}  // namespace hummock::shard

#endif  // HUMMOCK_SHARD_SHARD_H
