// malloc: pop the thread's bin of the size's class.
#ifndef HUMMOCK_HEAP_ALLOCATE_H
#define HUMMOCK_HEAP_ALLOCATE_H

#include "heap/heap.h"

namespace hummock::heap {

// malloc finds the bins of sizes up to this in one step.
inline constexpr size_t kDirectSize = 1024;

// Where the bin of a size is in a heap. Size 0 counts as 1.
struct BinOffsets {
  uint16_t of[kDirectSize + 1];
};
constexpr BinOffsets make_bin_offsets() {
  BinOffsets table = {};
  for (size_t size = 0; size <= kDirectSize; ++size) {
    table.of[size] = static_cast<uint16_t>(slab::class_of(size == 0 ? 1 : size) * sizeof(Bin));
  }
  return table;
}
inline constexpr BinOffsets kBinOffsets = make_bin_offsets();
static_assert(offsetof(Heap, bins) == 0);

// The calling thread's bin of a class is empty, or its list is broken.
void* allocate_slow(Bin* bin);
// The size is beyond the direct ones, or nothing may take the fast path: every size counts then.
void* allocate_medium(size_t size);

// kDirectSize once the options are read and no mode needs to see every call, else 0. One word for
// "is it small?" and "is it allowed?", so the second question costs nothing.
// Written once; atomic, relaxed: a late reader takes the slow path.
extern size_t fast_limit HUMMOCK_HIDDEN;

// Null: the bin is empty, or what comes next is no free block of it.
__attribute__((always_inline)) inline void* pop(Bin* bin) {
  void* block = bin->blocks;
  if (__builtin_expect(slab::stamp_of(block) != reinterpret_cast<uintptr_t>(bin), false)) return nullptr;
  bin->blocks = slab::link_of(block);
  slab::stamp_of(block) = 0;
  return block;
}

// Of any class: blocks of 8 bytes bear no stamp.
inline void* pop_any(Bin* bin, unsigned size_class) {
  if (size_class != slab::kTiny) return pop(bin);
  void* block = bin->blocks;
  if (block == bin) return nullptr;
  bin->blocks = slab::link_of(block);
  return block;
}

__attribute__((always_inline)) inline void* allocate(size_t size) {
  if (__builtin_expect(size > relaxed(fast_limit), false)) return allocate_medium(size);
  Heap* heap = thread_heap;
  Bin* bin = reinterpret_cast<Bin*>(reinterpret_cast<char*>(heap) + kBinOffsets.of[size]);
  void* block = pop(bin);
  return __builtin_expect(block != nullptr, true) ? block : allocate_slow(bin);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOCATE_H
