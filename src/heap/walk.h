// Live blocks, one by one, beside running threads; and how sparse the slab of one is.
#ifndef HUMMOCK_HEAP_WALK_H
#define HUMMOCK_HEAP_WALK_H

#include "heap/user.h"

namespace hummock::heap {

struct Visitor {
  int (*visit)(void* context, void* block, size_t size);
  void* context;
};

// As hummock_heap_walk, for a heap or for all that is in none; not for the modes that see every call.
void walk_blocks(UserHeap* heap, const Visitor& visitor);

// Every block of a first-class heap that is not free, until the visitor stops. The caller has the heap's
// lock: the visitor may change the blocks, but must not allocate or free.
void walk_held(const UserHeap* heap, const Visitor& visitor);

// As hummock_slab_utilisation.
int utilisation(const void* p);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_WALK_H
