// A tool's hooks, called for each block that is allocated or freed. While any is installed, `fast_limit` is
// 0, so that every malloc takes the slow path; and each thread takes its slabs off the fast path of free at
// its first call.
#ifndef HUMMOCK_HEAP_HOOKS_H
#define HUMMOCK_HEAP_HOOKS_H

#include "heap/attach.h"
#include "hummock/hummock.h"

namespace hummock::heap::hooks {

// The program's hooks, or null. Atomic: release by install, acquire by the thread that calls them.
extern const hummock_hooks_t* installed;

// Returns 0 or an error number. Not for modes that see every call themselves.
int install(const hummock_hooks_t* wanted);

// For the child of a fork: a thread that was installing hooks is not there.
void begin_in_child();

// The hooks, if one wants each call, which implies sees_every_call(). Null: none does.
const hummock_hooks_t* wanted_calls();

// Makes the calling thread's frees take the slow path from now on, or the fast one again.
void leave_fast_path(Heap* heap);
void return_to_fast_path(Heap* heap);
// Call the hooks for a block; they do nothing within a hook's own calls.
void* tell_allocated(const hummock_hooks_t* to, void* block, size_t size);
void tell_resized(const hummock_hooks_t* to, void* block, size_t size);
void tell_released(const hummock_hooks_t* to, void* block);

}  // namespace hummock::heap::hooks

#endif  // HUMMOCK_HEAP_HOOKS_H
