// How much a thread's magazines may hold, and what goes back: see magazine.cc. The heap is the caller's.
#ifndef HUMMOCK_HEAP_MAGAZINE_H
#define HUMMOCK_HEAP_MAGAZINE_H

#include "heap/allocate.h"

namespace hummock::heap {

// Empties the bins, whose magazines have no room then; before a heap's first use.
void open_bins(Heap* heap);

// There was no room for a magazine worth the way of its blocks through it: those of slabs that begin now go
// straight back there.
inline constexpr int kLeastMagazine = 8;
inline bool is_direct(const Bin& bin) {
  return bin.refused && bin.limit < kLeastMagazine;
}

// Puts blocks into an empty magazine.
inline void put_list(Bin* bin, const slab::List& list) {
  bin->blocks = list.first;
  bin->room -= static_cast<int32_t>(list.count);
}

// A block was freed straight to its slab. True: as many were as are worth a look.
__attribute__((always_inline)) inline bool add_direct(Heap* heap, unsigned size_class) {
  uint16_t& left = heap->bins[size_class].direct;
  const unsigned weight = slab::kTable.row[size_class].weight;
  const bool look = left < weight;
  left = static_cast<uint16_t>(left - weight);
  return look;
}
// Then: what the class still holds goes back, too, a step at a time, unless malloc asked for such blocks.
void after_direct_frees(Heap* heap, unsigned size_class);
// Looks at the next classes, but for one flush at most: what nobody touched since the last look goes back.
// Not of the class whose bin is about to be filled: a step may end with blocks in the bin.
void sweep(Heap* heap, unsigned classes, unsigned except);
inline constexpr unsigned kSweepOfTick = 4;

// Returns to the slabs what the magazines of all classes hold; what one class holds, with the rest of its
// slab.
void flush_magazines(Heap* heap);
void empty_bin(Heap* heap, unsigned size_class);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_MAGAZINE_H
