// Messages about pointers that are no live block of ours. None returns.
#ifndef HUMMOCK_HEAP_DIAGNOSE_H
#define HUMMOCK_HEAP_DIAGNOSE_H

#include "heap/heap.h"

namespace hummock::heap {

// `call` was given p, which is not the start of a live block. Says what is there instead, to the program's
// handler if it set one. Callers that hold a lock or have changed something pass base::die.
[[noreturn]] void bad_pointer(const char* call, const void* p, slab::End end = base::refuse);

// Aborts with a message unless p is the start of a live block of the slab. A block that another thread frees
// at this very moment may still seem live.
void check_live(const char* call, const SlabHeader* slab, const void* p, slab::End end = base::refuse);
// It bears the mark of a free block: is it one? `waits`: another thread may have marked it a moment ago.
bool is_free(const SlabHeader* slab, const void* p, bool waits);

// The next block of a bin is not what it should be.
[[noreturn]] void bad_bin(const void* block, unsigned size_class);

// The sizes that a live block can have been asked with: up to its room, and not so small that a smaller
// class would have served. `align` 0 or the alignment that the caller claims.
void check_claim(const char* call, const void* p, size_t room, size_t claimed, size_t align);

// The link is that of a block which waits in some heap's remote cache (heap/remote.cc).
bool is_waiting(uintptr_t link);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_DIAGNOSE_H
