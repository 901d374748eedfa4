// free: keep the block at hand, if its slab is this thread's.
#ifndef HUMMOCK_HEAP_RELEASE_H
#define HUMMOCK_HEAP_RELEASE_H

#include "heap/allocate.h"

namespace hummock::heap {

// For all that the fast path does not take: null, foreign, another thread's, large, or wrong pointers; slabs
// whose frees go to their own list; a pointer that is no block's start; a block that looks free. `slot` is
// p's.
void release_slow(void* p, SlabHeader* slot);
// The same for operator delete, which recording tells from free.
void release_slow_delete(void* p, SlabHeader* slot);
// The magazine has one block more than it has room for.
void magazine_full(Bin* bin);
// The slab has no block in use any more.
void emptied(Heap* heap, SlabHeader* slab);

__attribute__((always_inline)) inline void release_to_slab(Heap* heap, SlabHeader* slab, void* p) {
  slab::put_block(slab, p);
  if (__builtin_expect(slab->live == 0, false)) emptied(heap, slab);
}

// Puts the block, which the caller knows to be live, into the magazine.
__attribute__((always_inline)) inline void release_near(Bin* bin, void* p) {
  slab::set_next(p, bin->blocks);
  bin->blocks = p;
  if (__builtin_expect(--bin->room < 0, false)) magazine_full(bin);
}

// Puts p into the magazine if it is a live block of this thread, and of the bin `expected` if that is not
// null. Else calls `slow` with distance_of(p).
template <class Slow>
__attribute__((always_inline)) inline void release_or(void* p, const Bin* expected, Slow slow) {
  intptr_t distance = pages::distance_of(p);
  // Without the `asm`s the compiler keeps the sum in a register, which costs an instruction.
  if (__builtin_expect(relaxed(pages::header_at(distance)->freer) != os::thread_address(), false)) {
    asm("" : "+r"(distance));
    return slow(distance);
  }
  asm("" : "+r"(distance));
  Bin* bin = pages::header_at(distance)->bin;
  if (expected != nullptr && __builtin_expect(bin != expected, false)) return slow(distance);
  const uint64_t product = reinterpret_cast<uintptr_t>(p) * bin->multiplier;
  asm("" : "+r"(distance));
  if (__builtin_expect(product >= relaxed(pages::header_at(distance)->free_bound), false)) {
    asm("" : "+r"(distance));
    return slow(distance);
  }
  if (__builtin_expect(slab::looks_free(p), false)) {
    asm("" : "+r"(distance));
    return slow(distance);
  }
  release_near(bin, p);
}

template <void (*otherwise)(void*, SlabHeader*) = release_slow>
__attribute__((always_inline)) inline void release(void* p) {
  release_or(
      p, nullptr, [p](intptr_t distance) __attribute__((always_inline)) {
        otherwise(p, pages::header_at(distance));
      });
}

// For the modes, which have seen the call: release of what they leave to the heap.
void release_unseen(void* p, SlabHeader* slot);
// Aborts unless p is a live block that was asked with this size, and this alignment if it is not 0.
void check_sized(const char* call, void* p, size_t align, size_t size);

// The block is not of the size's class, or not plainly this thread's.
void release_sized_slow(void* p, size_t size);

// release, but aborts with a message if no request of this size can have returned the block.
__attribute__((always_inline)) inline void release_sized(void* p, size_t size) {
  if (__builtin_expect(size > relaxed(fast_limit.value), false)) return release_sized_slow(p, size);
  const Bin* expected = bin_of_size(thread_heap, size);
  release_or(
      p, expected, [=](intptr_t) __attribute__((always_inline)) { release_sized_slow(p, size); });
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_RELEASE_H
