// Filling a bin, and what a heap does with its slabs. The heap is the caller's: its thread's, or locked.
#ifndef HUMMOCK_HEAP_REFILL_H
#define HUMMOCK_HEAP_REFILL_H

#include "heap/heap.h"

namespace hummock::heap {

// An empty bin ends where its slab's list did; else a block was freed while it stood there.
inline void check_bin(const Heap* heap, size_t size_class, const SlabHeader* slab) {
  if (__builtin_expect(heap->bins[size_class] != slab::end_of(slab), false)) {
    slab::corrupted(slab, "a block was freed twice, or written to after it was freed");
  }
}

// A block of the class, the rest of what was found going to the bin. Null: no memory.
void* refill(Heap* heap, unsigned size_class);

// An owned slab, in no list, that has free blocks (in use ≠ 0): joins the partial ones. Empty: goes back.
void file_slab(Heap* heap, SlabHeader* slab);

// Before the first free into a full slab that the heap kept.
void no_longer_full(Heap* heap, SlabHeader* slab);

// Takes the inbox: what others freed in our slabs.
void read_inbox(Heap* heap);

// All of a heap's blocks in bins go back to their slabs, and all its slabs to others.
void leave_slabs(Heap* heap);

// Every slab given back with whatever lives in it.
void drop_slabs(Heap* heap);

// ---- Remote frees (heap/remote.cc) ---------------------------------------------------------------

// Puts p in the heap's remote cache, to be handed over with others of its slab.
void release_remote(Heap* heap, SlabHeader* slab, void* p);
// Hands one block over at once; for threads that have ended.
void release_remote_now(SlabHeader* slab, void* p);
void flush_remote(Heap* heap);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_REFILL_H
