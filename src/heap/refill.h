// Filling a bin, and what a heap does with its slabs. The heap is the calling thread's.
#ifndef HUMMOCK_HEAP_REFILL_H
#define HUMMOCK_HEAP_REFILL_H

#include "heap/allocate.h"
#include "heap/diagnose.h"
#include "heap/heap.h"

namespace hummock::heap {

// The bin gave no block. Unless it is empty, the next one was freed twice, or written to.
inline void check_bin(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  if (__builtin_expect(bin.blocks != &bin, false)) bad_bin(bin.blocks, size_class);
}

// Calls past the fast path until the next look whether memory is to go back. A power of two.
inline constexpr unsigned kCallsPerTick = 16;

// A block of the class, the rest of what was found going to the bin. Null: no memory.
void* refill(Heap* heap, unsigned size_class);

// A block that the class's slab has at hand, where few blocks would go through the magazine. Null: none, or
// the long way is due.
void* pop_direct(Heap* heap, Bin* bin);

// An owned slab, in no list, that has free blocks (in use ≠ 0): joins the partial ones. Empty: goes back.
void file_slab(Heap* heap, SlabHeader* slab);

// Before the first free into the list of a full slab that the heap kept.
void no_longer_full(Heap* heap, SlabHeader* slab);
// A slab that the heap has just taken back, and that is not empty, joins its lists.
void keep_slab(Heap* heap, SlabHeader* slab);
// From now on frees go to the slab's own list.
void make_direct(Heap* heap, SlabHeader* slab);

// Some of what rests of the class, which is something.
slab::List take_rest(Heap* heap, unsigned size_class);

// Looks at some of the slabs of which others tell that blocks came back. True: there are more.
bool read_inbox(Heap* heap);

// Pages that hold free blocks alone go back to the system: of the heap's slabs, and of those that nobody
// owns.
void purge_slabs(Heap* heap);

// All of a heap's blocks in bins go back to their slabs, and all its slabs to others.
void leave_slabs(Heap* heap);

// A block of a slab that another heap owns, or none, leaves this heap.
void give_foreign(Heap* heap, SlabHeader* slab, void* p);

// ---- Remote frees (heap/remote.cc) ---------------------------------------------------------------

// Where a block leads that waits in a heap's remote cache: to the heap's address and this.
inline constexpr uintptr_t kWaiting = 1;
// Puts p in the heap's remote cache, to be handed over with others. One of 8 bytes is marked.
// `live`: it was seen to be, with no exchange.
void release_remote(Heap* heap, SlabHeader* slab, void* p, bool live);
// Of all that free this block of the slab at the moment one comes back: the block is the caller's, linked as
// one that others freed. Stops the process for the others.
void claim_block(SlabHeader* slab, void* p);
// Frees one block at once; for threads that have no heap, as they have ended.
void release_remote_now(SlabHeader* slab, void* p);
// Hands over what waits.
void flush_remote_now(Heap* heap);
inline void flush_remote(Heap* heap) {
  if (heap->remote.count != 0) flush_remote_now(heap);
}
// Gives blocks back to a slab, and tells whom it concerns. As slab::push_remote.
void hand_over(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone = 0);
// Clears the queued flag of a slab that is not the caller's, and sees to what came back meanwhile.
void unqueue(SlabHeader* slab);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_REFILL_H
