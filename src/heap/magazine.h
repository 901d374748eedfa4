// Blocks that a thread freed lately: see magazine.cc. The heap is the caller's.
#ifndef HUMMOCK_HEAP_MAGAZINE_H
#define HUMMOCK_HEAP_MAGAZINE_H

#include "heap/allocate.h"

namespace hummock::heap {

// Empties the bins, whose magazines have no room then; before a heap's first use.
void open_bins(Heap* heap);

inline bool has_magazine(const Heap* heap, const Bin* bin) {
  return bin->magazine != bin || heap->magazines[bin - heap->bins].count != 0;
}
// A block of the newest magazine, of which there is one; the others go to the bin, which is empty.
void* take_magazine(Heap* heap, Bin* bin);
// For classes of large blocks: the one freed last, which is in the processor's caches, else as pop.
inline void* take_last_or_pop(Bin* bin) {
  void* block = pop_list(&bin->magazine);
  if (block == nullptr) return pop(bin);
  ++bin->room;
  return block;
}

// A block was freed straight to its slab. True: as many were as are worth a look.
__attribute__((always_inline)) inline bool add_direct(Heap* heap, unsigned size_class) {
  uint16_t& left = heap->magazines[size_class].direct;
  const unsigned weight = slab::kTable.row[size_class].weight;
  const bool look = left < weight;
  left = static_cast<uint16_t>(left - weight);
  return look;
}
// Then: what the class still holds goes back, too, a step at a time, unless malloc asked for such blocks.
void after_direct_frees(Heap* heap, unsigned size_class);
// Looks at the next classes, but for one flush at most: what nobody asked for since the last look goes back.
// Not of the class whose bin is about to be filled: a step may end with blocks in the bin.
void sweep(Heap* heap, unsigned classes, unsigned except);
inline constexpr unsigned kSweepOfTick = 4;

// What magazines hold goes back to the slabs: of all classes; of one, and the bin's blocks too.
void flush_magazines(Heap* heap);
void empty_bin(Heap* heap, unsigned size_class);

// A list of free blocks.
struct List {
  void* first;
  unsigned count;
};
List open_magazine(const Heap* heap, unsigned size_class);
List full_magazine(const Heap* heap, unsigned size_class, unsigned number);  // 0: the oldest
unsigned count_magazines(const Heap* heap, unsigned size_class);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_MAGAZINE_H
