// malloc: pop the thread's bin of the size's class.
#ifndef HUMMOCK_HEAP_ALLOCATE_H
#define HUMMOCK_HEAP_ALLOCATE_H

#include "heap/heap.h"

namespace hummock::heap {

// The bin is empty, or the size is beyond the stepped classes.
void* allocate_slow(size_t size);
void* allocate_medium(size_t size);

__attribute__((always_inline)) inline void* pop(Heap* heap, size_t size_class) {
  void* block = heap->bins[size_class];
  if (__builtin_expect(block != nullptr, true)) heap->bins[size_class] = slab::link_of(block);
  return block;
}

__attribute__((always_inline)) inline void* allocate(size_t size) {
  if (__builtin_expect(size > slab::kMaxStepped, false)) return allocate_medium(size);
  void* block = pop(thread_heap, (size + slab::kStep - 1) / slab::kStep);
  if (__builtin_expect(block == nullptr, false)) return allocate_slow(size);
  return block;
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOCATE_H
