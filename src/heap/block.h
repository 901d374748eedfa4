// A live block found from its address.
#ifndef HUMMOCK_HEAP_BLOCK_H
#define HUMMOCK_HEAP_BLOCK_H

#include "heap/heap.h"

namespace hummock::heap {

struct Block {
  SlabHeader* header;
  size_t room;
  UserHeap* heap;  // first-class heap it belongs to, or null
  bool is_large() const { return header->kind == Kind::large || header->kind == Kind::huge; }
};

// Aborts with a message naming `call` when p is not the start of a block.
Block find_block(const char* call, const void* p);

// The class whose blocks are all aligned to `align` and hold `size`; 0: none.
unsigned aligned_class(size_t align, size_t size);

// Sets errno to ENOMEM.
void* no_memory();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_BLOCK_H
