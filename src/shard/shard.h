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

// A push replaced `old` and added `count`. True if that took the count of a shared slab over a bound: then
// call settle(). A count already beyond it was acted on.
inline bool must_settle(const SlabHeader* slab, uint64_t old, uint32_t count) {
  if ((old & slab::kSharedBit) == 0) return false;
  const uint32_t before = slab::count_of(old);
  const uint32_t now = before + count;
  const uint32_t notify = __atomic_load_n(&slab->notify, __ATOMIC_RELAXED);
  const uint32_t live = __atomic_load_n(&slab->shared_live, __ATOMIC_RELAXED);
  return (before < notify && now >= notify) || now >= live;
}

// Lists a shared slab if it is worth adopting, or destroys it if it is empty. Idempotent, so it may be called
// on suspicion; a slab that is no longer shared stays as it is.
void settle(SlabHeader* slab);

// Calls `purge` with each listed slab, which `heap` owns meanwhile. Returns the sum of what it returned.
size_t purge_listed(heap::Heap* heap, size_t (*purge)(SlabHeader*));

void at_fork(os::ForkStep step);

}  // namespace hummock::shard

#endif  // HUMMOCK_SHARD_SHARD_H
