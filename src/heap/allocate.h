// malloc: pop the thread's bin of the size's class.
#ifndef HUMMOCK_HEAP_ALLOCATE_H
#define HUMMOCK_HEAP_ALLOCATE_H

#include "heap/heap.h"

namespace hummock::heap {

// The bin of a stepped class (0: for size 0) is empty.
void* allocate_slow(size_t size_class);
// The size is beyond the stepped classes, or nothing may take the fast path: every size counts then.
void* allocate_medium(size_t size);

// kMaxStepped once the options are read and no mode needs to see every call, else 0. One word for
// "is it small?" and "is it allowed?", so the second question costs nothing.
// Written once; atomic, relaxed: a late reader takes the slow path.
extern size_t fast_limit __attribute__((visibility("hidden")));

__attribute__((always_inline)) inline void* pop(Heap* heap, size_t size_class) {
  void* block = heap->bins[size_class];
  if (__builtin_expect(slab::is_end(block), false)) return nullptr;
  heap->bins[size_class] = slab::link_of(block);
  return block;
}

__attribute__((always_inline)) inline void* allocate(size_t size) {
  if (__builtin_expect(size > relaxed(fast_limit), false)) return allocate_medium(size);
  const size_t size_class = (size + slab::kStep - 1) / slab::kStep;
  Heap* heap = thread_heap;
  void* block = heap->bins[size_class];
  if (__builtin_expect(slab::is_end(block), false)) return allocate_slow(size_class);
  heap->bins[size_class] = slab::link_of(block);
  return block;
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOCATE_H
