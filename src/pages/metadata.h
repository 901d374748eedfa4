// Memory for the allocator's own records. It is never given back, so a pointer to a record is good for
// ever. Zeroed.
#ifndef HUMMOCK_PAGES_METADATA_H
#define HUMMOCK_PAGES_METADATA_H

#include <stddef.h>

#include "os/thread.h"

namespace hummock::pages {

// Null when the system has no memory. 64-byte aligned. Thread-safe.
void* new_record(size_t size);
// The same, of the page heap's memory if need be: where the system has no address space left, the page heap
// may have memory that was freed. Not for the page heap's own records.
void* new_heap_record(size_t size);

size_t metadata_bytes();

void metadata_at_fork(os::ForkStep step);
bool metadata_is_locked();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_METADATA_H
