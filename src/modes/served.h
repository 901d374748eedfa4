// Served mode: the malloc family's blocks come from the process's external space, and from nowhere else.
// As in checked mode no thread has a heap, so every call arrives on a slow path and from there here.
// First-class heaps keep their own memory.
#ifndef HUMMOCK_MODES_SERVED_H
#define HUMMOCK_MODES_SERVED_H

#include "heap/modes.h"
#include "hummock/hummock.h"
#include "hummock/page.h"
#include "os/thread.h"

namespace hummock::modes::served {

// Makes the space as the options say, or ends the process with a line that says why not.
void start();

// The space, or null; what it points to is for served.cc. Atomic.
extern void* serving HUMMOCK_HIDDEN;
// Without reading the options first: false is also the answer before they are read.
inline bool is_on() {
  return __builtin_expect(__atomic_load_n(&serving, __ATOMIC_RELAXED) != nullptr, false);
}

// align 0: natural. Null + ENOMEM when the space has no room.
void* allocate(size_t align, size_t size, bool zero);
// While is_on(): malloc.
void* allocate_plain(size_t size);

// For what owns() said yes to.
void* reallocate(void* p, size_t size, bool zero);
size_t usable_size(const void* p);
void release_sized(const char* call, void* p, size_t align, size_t size);

// While is_on(): releases what the space has. False: it is not the space's.
bool release(void* p);

// Figures of the process's spaces, as many as there is room for; how many there are. None where another
// thread makes or ends one at this very moment.
uint32_t list_spaces(hummock_page_space_t* rows, uint32_t room, uint64_t* all);

// Adds the space to the process's figures, if there is one.
void add_figures(hummock_stats_t* out);

}  // namespace hummock::modes::served

#endif  // HUMMOCK_MODES_SERVED_H
