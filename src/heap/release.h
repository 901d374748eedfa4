// free: push the block on its slab's list, if the slab is this thread's.
#ifndef HUMMOCK_HEAP_RELEASE_H
#define HUMMOCK_HEAP_RELEASE_H

#include "heap/heap.h"

namespace hummock::heap {

// A block that is freed twice is found when its slab's list is taken, always before it could be handed
// out twice: comparing here with the list's head only would cost every free two instructions.

// Not this thread's slab: null, foreign, remote, large, or wrong.
void release_slow(void* p);
// The slab has become empty.
void emptied(Heap* heap, SlabHeader* slab);

__attribute__((always_inline)) inline void release_own(Heap* heap, SlabHeader* slab, void* p) {
  slab::link_of(p) = slab->free;
  slab->free = p;
  slab->live_sum -= reinterpret_cast<uintptr_t>(p);
  if (__builtin_expect(slab->live_sum == 0, false)) emptied(heap, slab);
}

__attribute__((always_inline)) inline void release(void* p) {
  SlabHeader* slab = pages::header_of(p);
  Heap* heap = thread_heap;
  if (__builtin_expect(owner_of(slab) != reinterpret_cast<uintptr_t>(heap), false)) return release_slow(p);
  release_own(heap, slab, p);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_RELEASE_H
