// Threads: their ends, one word of their own, and the calls that make one.
#ifndef HUMMOCK_OS_THREAD_H
#define HUMMOCK_OS_THREAD_H

#include <stdint.h>

#if defined(_WIN32)
#include "os/windows/slot.h"
#else
// A pointer that each thread has for itself, at first &initial. Initial-exec: one load, and no trouble
// with dlopen at this size.
#define HUMMOCK_THREAD_POINTER(type, initial) __thread __attribute__((tls_model("initial-exec"))) type*
// Known to stand in this very library: no detour to find it.
#define HUMMOCK_HIDDEN __attribute__((visibility("hidden")))
namespace hummock::os {
// Something of the thread's own: no other live thread has it. Its two lowest bits are 0.
inline uintptr_t thread_address() {
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
}

// Where the kernel keeps the number of the thread's processor (rseq), from thread_address(); 0: nowhere.
// Written once, at the start.
extern intptr_t processor_at HUMMOCK_HIDDEN;
// The processor on which the thread runs, or ran a moment ago; `otherwise` if only a system call would tell.
inline unsigned processor(unsigned otherwise) {
  if (__builtin_expect(processor_at == 0, false)) return otherwise;
  const uintptr_t number = thread_address() + static_cast<uintptr_t>(processor_at);
  return __atomic_load_n(reinterpret_cast<const unsigned*>(number), __ATOMIC_RELAXED);
}
void find_processor();
}  // namespace hummock::os
#endif

namespace hummock::os {

// Has end(value) called when a thread ends that has a value. Once, before any value is set.
void on_thread_exit(void (*end)(void*));
// The calling thread's value; null: none. False: nobody would tell of the thread's end, it has none.
bool set_exit_value(void* value);

// Is the calling thread at its end when end(value) is called, `own` telling whether the value is its own? It
// may have given that up before.
#if defined(_WIN32)
bool ends_thread(bool own);
#else
inline bool ends_thread(bool own) {
  return own;
}
#endif

// Does a value that is set while the thread ends, after end() was called for it, bring another call?
#if defined(_WIN32)
inline bool exit_repeats() {
  return false;
}
#else
bool exit_repeats();
#endif

// Around each fork of the process, where there is such a thing.
enum class ForkStep : uint8_t { before, in_parent, in_child };
using ForkHandler = void(ForkStep);
// Has this called at each step from now on. libc's list of streams is taken ahead of the first.
void on_fork(ForkHandler* handler);
// For other handlers of fork that take locks: first in the one before it, last in those after it.
void take_streams();
void release_streams();
void reset_streams();

// The calling thread's number, as the system's tools show it. One system call on Linux.
unsigned thread_id();

// A thread of the allocator's own, with all signals blocked. Nobody waits for it. False: none to be had.
bool start_thread(void (*run)());
void sleep_ms(unsigned ms);
// Has the system tell of memory that is short, here and in the process's control group; false: it does not.
// Again in the child of a fork. Then sleep_or_pressure() may end early, with true.
bool watch_pressure();
bool sleep_or_pressure(unsigned ms);
// The file that it waits for, for tests; -1: none.
void watch_pressure_at(int fd);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_THREAD_H
