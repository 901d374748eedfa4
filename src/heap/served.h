// Served mode: the malloc family's blocks come from the process's external space, and from nowhere else.
// As in checked mode no thread has a heap, so every call arrives on a slow path and from there here.
// First-class heaps keep their own memory.
#ifndef HUMMOCK_HEAP_SERVED_H
#define HUMMOCK_HEAP_SERVED_H

#include "hummock/hummock.h"

namespace hummock::heap::served {

// Makes the space as the options say, or ends the process with a line that says why not.
void start();
// To be called after it, where malloc may be called.
void handle_forks();

// align 0: natural. Null + ENOMEM when the space has no room.
void* allocate(size_t align, size_t size, bool zero);

// Does the address lie in the space? False in every other mode.
bool owns(const void* p);

// For what owns() said yes to.
void* reallocate(void* p, size_t size, bool zero);
size_t usable_size(const void* p);
void release(void* p);
void release_sized(const char* call, void* p, size_t align, size_t size);

// Adds the space to the process's figures, if there is one.
void add_figures(hummock_stats_t* out);

}  // namespace hummock::heap::served

#endif  // HUMMOCK_HEAP_SERVED_H
