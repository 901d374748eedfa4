// A tool's hooks, called for each block that is allocated or freed. While any is installed, `fast_limit` is
// 0, so that every malloc takes the slow path; and each thread takes its slabs off the fast path of free at
// its first call.
#ifndef HUMMOCK_MODES_HOOKS_H
#define HUMMOCK_MODES_HOOKS_H

#include "heap/modes.h"
#include "hummock/hummock.h"

namespace hummock::modes::hooks {

// The program's hooks, or null. Atomic: release by install, acquire by the thread that calls them.
extern const hummock_hooks_t* installed;

// Returns 0 or an error number. Not for modes that see every call themselves.
int install(const hummock_hooks_t* wanted);

// For the child of a fork: a thread that was installing hooks is not there.
void begin_in_child();

// The hooks, if one wants each call, which implies sees_every_call(). Null: none does.
const hummock_hooks_t* wanted_calls();

// Call the hooks for a block; they do nothing within a hook's own calls.
void* tell_allocated(const hummock_hooks_t* to, void* block, size_t size);
void tell_resized(const hummock_hooks_t* to, void* block, size_t size);
void tell_released(const hummock_hooks_t* to, void* block);

}  // namespace hummock::modes::hooks

#endif  // HUMMOCK_MODES_HOOKS_H
