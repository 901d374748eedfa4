// A live block found from its address.
#ifndef HUMMOCK_HEAP_BLOCK_H
#define HUMMOCK_HEAP_BLOCK_H

#include "heap/heap.h"

namespace hummock::heap {

struct Block {
  SlabHeader* header;
  size_t room;
  UserHeap* heap;  // first-class heap it belongs to, or null
  bool is_large() const { return kind_of(header) == Kind::large || kind_of(header) == Kind::huge; }
};

// Of a live block, as find_slab finds its header.
inline size_t room_of(const SlabHeader* header) {
  const bool small = kind_of(header) == Kind::slab || kind_of(header) == Kind::own_slab;
  return small ? slab::row_of(header).block_size : header->bytes;
}

// Aborts with a message naming `call` when p is not the start of a block.
Block find_block(const char* call, const void* p);

// The room of a block of this thread's own, as most are; 0 for anything else, to be looked at closely.
// The class is the bin's, which stands in each slot: so the room waits for no look at the slab's first one.
__attribute__((always_inline)) inline size_t room_in_own(const SlabHeader* slot, const void* p) {
  const Heap* heap = thread_heap;
  if (owner_of(slot) != reinterpret_cast<uintptr_t>(heap)) return 0;
  const slab::SizeClass& row = slab::kTable.row[slot->bin - heap->bins];
  if (!slab::is_start(slot, row.multiplier, p) || slab::looks_free(const_cast<void*>(p))) return 0;
  return row.block_size;
}

// The same for a block whose free goes to its slab's own list.
inline size_t room_in_direct(const SlabHeader* slot, const void* p) {
  const Heap* heap = thread_heap;
  if (owner_of(slot) != reinterpret_cast<uintptr_t>(heap) + kDirect) return 0;
  const slab::SizeClass& row = slab::row_of(slot - slot->back);
  const bool live =
      slab::is_start(slot, row.multiplier, p) && !slab::looks_free(slot - slot->back, const_cast<void*>(p));
  return live ? row.block_size : 0;
}

// Sets errno to ENOMEM.
void* no_memory();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_BLOCK_H
