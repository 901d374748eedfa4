// How much a thread's magazines may hold, and what is flushed: see magazine.cc. The heap is the caller's.
#ifndef HUMMOCK_HEAP_MAGAZINE_H
#define HUMMOCK_HEAP_MAGAZINE_H

#include "heap/allocate.h"

namespace hummock::heap {

// Makes all bins empty, with magazines that have no room. For a heap's first use.
void open_bins(Heap* heap);

// The class was refused room and has next to none, so its frees go straight to their slabs.
inline constexpr int kLeastMagazine = 8;
inline bool is_direct(const Bin& bin) {
  return bin.refused && bin.limit < kLeastMagazine;
}

// Puts blocks into an empty magazine.
inline void put_list(Bin* bin, const slab::List& list) {
  bin->blocks = list.first;
  bin->room -= static_cast<int32_t>(list.count);
}

// Counts a block that was freed straight to its slab. True: a look is due.
__attribute__((always_inline)) inline bool add_direct(Bin* bin) {
  return --bin->direct == 0;
}
// That look: flushes a step of what the class still holds, unless malloc asked for such blocks. If it holds
// nothing, looks at the thread's own slabs; else ticks if something is left to do.
void after_direct_frees(Heap* heap, Bin* bin);
// Looks at the next classes, and flushes at most one that nobody touched since the last look. Leaves out the
// class `except`, whose bin is about to be filled: a flush may leave blocks in the bin.
void sweep(Heap* heap, unsigned classes, unsigned except);

// Flushes a step of the next class that holds something. False: none holds anything.
bool flush_next(Heap* heap);
// The first flushes the magazines of all classes; the second flushes one class with its rest.
void flush_magazines(Heap* heap);
void empty_bin(Heap* heap, unsigned size_class);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_MAGAZINE_H
