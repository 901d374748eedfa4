// Memory of free blocks in the thread's own slabs: see own_slabs.cc.
#ifndef HUMMOCK_HEAP_OWN_SLABS_H
#define HUMMOCK_HEAP_OWN_SLABS_H

#include "heap/heap.h"

namespace hummock::heap {

// Looks at the next slabs, and purges pages if too much is free. Call it once for each 16 KiB that the thread
// frees into its slabs, or after so many frees as it says, if they are fewer.
unsigned look_at_own(Heap* heap);
// Ends what a look began. Call it before the heap's slabs leave it.
void end_own_purge(Heap* heap);
// For a trim. They return the bytes that they purged. The second is for a slab that is in no list of the
// heap, which owns it; no purge may be under way. The slab may be empty then, and stays.
size_t purge_all_own(Heap* heap);
size_t purge_at_once(SlabHeader* slab);
// The heap has no slabs any more.
void end_own_round(Heap* heap);

// For fork: only the heap of this thread is left, or none.
void reset_own(const Heap* heap);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_OWN_SLABS_H
