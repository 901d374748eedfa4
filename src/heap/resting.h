// How much memory of free blocks may rest in slabs before frees purge it.
#ifndef HUMMOCK_HEAP_RESTING_H
#define HUMMOCK_HEAP_RESTING_H

#include <stddef.h>

namespace hummock::heap {

// So many bytes that others freed may wait for the owners of slabs.
size_t most_resting();
// Does so much wait that a free sees to a slab which it empties?
bool returned_too_much();
// Are these bytes, of threads' own frees, with what others freed, more than may rest?
bool is_too_much(size_t own_bytes);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_RESTING_H
