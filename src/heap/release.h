// free: keep the block at hand, if its slab is this thread's.
#ifndef HUMMOCK_HEAP_RELEASE_H
#define HUMMOCK_HEAP_RELEASE_H

#include "heap/heap.h"

namespace hummock::heap {

// A block that is freed twice is found when it is about to be handed out for the second time: looking at
// its stamp here, too, would cost every free two instructions more.

// Not this thread's slab: null, foreign, remote, large, or wrong. Or frees go to the slab's own list.
// `slot` is p's, `heap` the calling thread's.
void release_slow(void* p, SlabHeader* slot, Heap* heap);
// `recent` is full.
void put_aside(Heap* heap, Bin* bin);
// A slab, its lists included, has become empty.
void emptied(Heap* heap, SlabHeader* slab);

__attribute__((always_inline)) inline void release_to_slab(Heap* heap, SlabHeader* slab, void* p) {
  slab::put_block(slab, p);
  if (__builtin_expect(slab->live_sum == 0, false)) emptied(heap, slab);
}

__attribute__((always_inline)) inline void release_recent(Heap* heap, Bin* bin, void* p) {
  slab::link_of(p) = bin->recent;
  slab::stamp_of(p) = reinterpret_cast<uintptr_t>(bin);
  bin->recent = p;
  bin->sum += reinterpret_cast<uintptr_t>(p);
  if (__builtin_expect(--bin->room < 0, false)) put_aside(heap, bin);
}

__attribute__((always_inline)) inline void release(void* p) {
  intptr_t distance = pages::distance_of(p);
  Heap* heap = thread_heap;
  if (__builtin_expect(owner_of(pages::header_at(distance)) != reinterpret_cast<uintptr_t>(heap), false)) {
    asm("" : "+r"(distance));  // else the sum is kept in a register, which costs an instruction
    return release_slow(p, pages::header_at(distance), heap);
  }
  asm("" : "+r"(distance));
  release_recent(heap, pages::header_at(distance)->bin, p);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_RELEASE_H
