// First-class heaps: one lock each, their own slabs and large blocks.
#ifndef HUMMOCK_HEAP_USER_H
#define HUMMOCK_HEAP_USER_H

#include "heap/heap.h"

namespace hummock::heap {

// Aligned and zeroed at will; the common part of the user_… calls and of checked mode.
void* user_take(Heap* heap, size_t align, size_t size, bool zero);
// Its counterpart.
void user_give(Heap* heap, void* p);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_USER_H
