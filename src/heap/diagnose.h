// Messages about pointers that are no live block of ours. None returns.
#ifndef HUMMOCK_HEAP_DIAGNOSE_H
#define HUMMOCK_HEAP_DIAGNOSE_H

#include "heap/heap.h"

namespace hummock::heap {

// `call` was given p, which is not the start of a live block. Says what is there instead, to the program's
// handler if it set one. Callers that hold a lock or have changed something pass base::die.
[[noreturn]] void bad_pointer(const char* call, const void* p, slab::End end = base::refuse);

// The lists of a bin are not what they should be.
[[noreturn]] void bad_list(void* first, size_t count, unsigned size_class);
[[noreturn]] void bad_bin(const void* block, unsigned size_class);

// The sizes that a live block can have been asked with: up to its room, and not so small that a smaller
// class would have served. `align` 0 or the alignment that the caller claims.
void check_claim(const char* call, const void* p, size_t room, size_t claimed, size_t align);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_DIAGNOSE_H
