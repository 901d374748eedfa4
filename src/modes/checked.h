// Checked mode: every block is between a record and a canary; freed blocks are poisoned and wait before
// reuse. No thread has a heap of its own then, so every call takes a slow path and comes here.
#ifndef HUMMOCK_MODES_CHECKED_H
#define HUMMOCK_MODES_CHECKED_H

#include "heap/modes.h"

namespace hummock::modes::checked {

// `heap` null: the process's own. `align` 0: the usual one. Null + ENOMEM: memory is short.
void* allocate(UserHeap* heap, size_t align, size_t size, bool zero);
size_t usable_size(const void* p);  // exactly the size that was asked for
// `heap`: the one that the call names; null: none.
void release(const char* call, void* p, const UserHeap* heap = nullptr);
void release_sized(const char* call, void* p, size_t align, size_t size);

// What allocated the block: operator new, or new[].
void note_one(void* p);
void note_array(void* p);
// Of operator delete, and of delete[], before they free it: reports a block of the other kind.
void expect_one(void* p);
void expect_array(void* p);
// Of an aligned delete, likewise: reports a block that was made with another alignment.
void expect_aligned(void* p, size_t align);

// True for the heaps of this mode itself.
bool is_process_heap(const UserHeap* heap);

// At the program's end: looks at every block, live or in quarantine, for stray writes.
void check_all();

void at_fork(os::ForkStep step);
bool is_locked();

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_CHECKED_H
