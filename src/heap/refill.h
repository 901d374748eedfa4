// Filling a bin, and what a heap does with its slabs. The heap is the calling thread's.
#ifndef HUMMOCK_HEAP_REFILL_H
#define HUMMOCK_HEAP_REFILL_H

#include "heap/allocate.h"
#include "heap/diagnose.h"
#include "heap/heap.h"
#include "heap/idle.h"
#include "shard/shard.h"

namespace hummock::heap {

// The bin gave no block. Either it is empty, or its next block was freed twice or written to.
inline void check_bin(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  if (__builtin_expect(bin.blocks != &bin, false)) bad_bin(bin.blocks, size_class);
}

// Of this many calls past the fast path one looks whether a tick is due. A power of two.
inline constexpr unsigned kCallsPerTick = 16;
// Counts such a call, as so many, and says whether it is the one. A look reads the clock, which takes as long
// as the call.
inline bool takes_turn(Heap* heap, unsigned calls = 1) {
  heap->refills = static_cast<uint8_t>(heap->refills + calls);
  return heap->refills % kCallsPerTick < calls || pages::is_behind();
}

// Returns a block of the class, and puts the rest of what it found into the bin. Null: no memory.
void* refill(Heap* heap, unsigned size_class);

// Returns a block of the class's rest, if the bin is empty and one is ready. Else null, as for threads
// without a heap.
__attribute__((always_inline)) inline void* take_ready(Heap* heap, Bin* bin) {
  slab::Rest* rest = &heap->rest[bin - heap->bins];
  if (rest->ready == 0 || bin->blocks != bin) return nullptr;
  bin->asked = true;
  return slab::take_one(rest, bin);
}

// For a class that is_direct(): a block straight from the current slab. Null: there is none, or a call of
// refill is due.
void* pop_direct(Heap* heap, Bin* bin);

// slab::create, after parked heaps have given up what they hold if memory is short.
SlabHeader* new_slab(unsigned size_class, Kind kind);

// Takes a slab that is not current out of the heap's lists.
void unlist(Heap* heap, SlabHeader* slab);
// The class's first partial slab, in no list any more; null: there is none.
SlabHeader* pop_partial(Heap* heap, unsigned size_class);
// Returns a slab that is in no list, and has no block in use, to the page heap.
void end_slab(Heap* heap, SlabHeader* slab);
// For an owned slab with free blocks that is in no list: it joins the partial ones, or is destroyed if empty.
void file_slab(Heap* heap, SlabHeader* slab);

// Call it before the first free into the list of a full slab that the heap kept.
void no_longer_full(Heap* heap, SlabHeader* slab);
// Puts a slab that the heap has just taken back, and that is not empty, into the heap's lists.
void keep_slab(Heap* heap, SlabHeader* slab);
// From now on the slab's frees go to its own list.
void make_direct(Heap* heap, SlabHeader* slab);

// Takes some blocks of the class's rest, which is not empty.
slab::List take_rest(Heap* heap, unsigned size_class);

// Purges pages that hold only free blocks, in the heap's slabs and in those that nobody owns.
void purge_slabs(Heap* heap);

// Calls `look` with each slab of the heap.
template <class Look>
void for_slabs(const Heap* heap, Look look) {
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    if (heap->current[c] != nullptr) look(heap->current[c]);
    for (SlabHeader* slab = heap->partial[c].front(); slab != nullptr; slab = slab->next) look(slab);
  }
  for (SlabHeader* slab = heap->full.front(); slab != nullptr; slab = slab->next) look(slab);
}
// Makes the frees of the heap's own thread take the slow path from now on, or the fast one again.
void leave_fast_path(Heap* heap);
void return_to_fast_path(Heap* heap);

// Gives slabs away, with all that their bins hold, until no more than so many bytes are free in the others,
// apart from magazines.
void leave_free_slabs(Heap* heap, size_t most);
// Gives away at most so many of the heap's slabs, whose bins are empty. False: it has no more.
bool leave_some_slabs(Heap* heap, unsigned most);
// Returns all blocks in the heap's bins to their slabs, and gives all its slabs away.
void leave_slabs(Heap* heap);

// Hands over a block from one of this heap's lists whose slab the heap does not own.
void give_foreign(Heap* heap, SlabHeader* slab, void* p);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_REFILL_H
