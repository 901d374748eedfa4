// Waiting in the kernel, for locks that stand in a space, and a fence that only one side pays for. Linux.
#ifndef HUMMOCK_OS_SLEEP_H
#define HUMMOCK_OS_SLEEP_H

#include <stdint.h>

namespace hummock::os {

// What else this layer keeps for each thread, side by side, because such storage is short.
struct ThreadWords {
  uint32_t number : 28;      // futex_number(); Linux has at most 2^22 threads
  uint32_t exit_rounds : 4;  // see linux/thread.cc
  uint32_t stack_bytes;      // see linux/backtrace.cc
};
extern __thread ThreadWords thread_words __attribute__((tls_model("initial-exec"), visibility("hidden")));

// The kernel's number of the calling thread: a system call at a thread's first use.
uint32_t futex_number();
// In the child of a fork, whose thread has another number.
void forget_futex_number();

// For a wait that does not say who waits.
inline constexpr uint32_t kAnyone = ~uint32_t{0};

// Sleeps while the word has this value; may return without reason. Keeps errno, as all of these do. `who`:
// bits, of which the waker must name one.
void sleep_while(const uint32_t* word, uint32_t value, uint32_t who = kAnyone);
// Wakes at most so many of those.
void wake_sleepers(const uint32_t* word, int most, uint32_t who = kAnyone);

// Has the calling thread a real-time policy of its own?
bool is_real_time();

// A word as the kernel's priority-inheriting futexes are: 0, or the holder's thread number, with bit 31 when
// the kernel must be asked to pass it on. True: the caller holds it; it lent the holder its priority
// meanwhile.
bool lock_lending(uint32_t* word);
void unlock_lending(uint32_t* word);

// Afterwards fence_others() works; false: the system has none.
bool prepare_to_fence_others();
// A full barrier in every running thread of the process.
void fence_others();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_SLEEP_H
