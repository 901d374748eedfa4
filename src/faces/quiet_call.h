// Calls of a program's functions whose exceptions must not get out: what nothrow operator new needs.
#ifndef HUMMOCK_FACES_QUIET_CALL_H
#define HUMMOCK_FACES_QUIET_CALL_H

#include <stddef.h>

#include <new>

namespace hummock::faces {

// Runs the new-handler; false when it threw. Also false, without running it, when what it throws could
// not be caught: the C++ run time was loaded by dlopen, after this library.
bool runs_quietly(std::new_handler help) noexcept;

// A replaced operator new; null when it threw.
void* calls_quietly(void* (*replaced)(size_t), size_t size) noexcept;
void* calls_quietly(void* (*replaced)(size_t, std::align_val_t), size_t size,
                    std::align_val_t alignment) noexcept;

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_QUIET_CALL_H
