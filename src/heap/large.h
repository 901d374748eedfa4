// Blocks above 64 KiB, and aligned ones that no class can serve.
#ifndef HUMMOCK_HEAP_LARGE_H
#define HUMMOCK_HEAP_LARGE_H

#include "heap/heap.h"

namespace hummock::heap {

// `owner` is a first-class heap (locked by the caller) or null. *zeroed says whether it reads zero.
void* allocate_large(Heap* owner, size_t size, size_t align, bool* zeroed);

// The header must be a large or huge block's, and p its start; its heap, if any, is locked.
void release_large(SlabHeader* header);

// Resizes where it stands or by remapping; null when that is not possible (the block is unchanged).
void* resize_large(SlabHeader* header, size_t size);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LARGE_H
