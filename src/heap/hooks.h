// Hooks of a tool, called for each block that comes and goes. While any is installed `fast_limit` is 0, so
// that every malloc arrives on the slow path; and each thread takes its slabs from the fast path of free when
// it first comes by.
#ifndef HUMMOCK_HEAP_HOOKS_H
#define HUMMOCK_HEAP_HOOKS_H

#include "heap/attach.h"
#include "hummock/hummock.h"

namespace hummock::heap::hooks {

// The program's, or null. Atomic: release by install, acquire by who calls them.
extern const hummock_hooks_t* installed;

// 0 or an error number. Not in modes that see every call for themselves.
int install(const hummock_hooks_t* wanted);

// In the child of a fork: whoever was installing hooks is not there.
void begin_in_child();

// Does some hook want each call? Only where sees_every_call() does this hold. Null: no.
const hummock_hooks_t* wanted_calls();

// The calling thread's frees take the slow path from now on, or the fast one again.
void leave_fast_path(Heap* heap);
void return_to_fast_path(Heap* heap);
// Tell of a block; nothing happens within a hook's own calls.
void* tell_allocated(const hummock_hooks_t* to, void* block, size_t size);
void tell_resized(const hummock_hooks_t* to, void* block, size_t size, void* before);
void tell_released(const hummock_hooks_t* to, void* block);

}  // namespace hummock::heap::hooks

#endif  // HUMMOCK_HEAP_HOOKS_H
