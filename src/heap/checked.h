// Checked mode: every block between a record and a canary, freed blocks poisoned and held back.
// No thread has a heap of its own then, so every call arrives on a slow path and from there here.
#ifndef HUMMOCK_HEAP_CHECKED_H
#define HUMMOCK_HEAP_CHECKED_H

#include "heap/heap.h"

namespace hummock::heap::checked {

// `heap` null: the process's. align 0: natural. Null + ENOMEM when memory is short.
void* allocate(UserHeap* heap, size_t align, size_t size, bool zero);
void* reallocate(UserHeap* heap, void* p, size_t size, bool zero);
size_t usable_size(const void* p);  // exactly what was asked for
void release(const char* call, void* p);
void release_sized(const char* call, void* p, size_t align, size_t size);

// The heap is being destroyed: none of its blocks is in quarantine, or on its way out, from then on. False
// when somebody stopped with such a block in hand: the heap must stay.
bool forget(UserHeap* heap);

// A block of new[]; and the claim, by delete[], that it is one.
void note_array(void* p);
void expect_array(void* p);

// True for the heaps of this mode itself.
bool is_process_heap(const UserHeap* heap);

// At the program's end: looks at every block, live or in quarantine, for stray writes.
void check_all();

void lock_for_fork();
void unlock_after_fork();
void unlock_in_child();
bool is_locked();

}  // namespace hummock::heap::checked

#endif  // HUMMOCK_HEAP_CHECKED_H
