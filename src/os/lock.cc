#include "os/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hummock::os {
namespace {

constexpr int kSpins = 100;  // critical sections are short: most waits end before a sleep would begin

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

// The futex is the word's lower half, which is the first on the machines we know.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

void Lock::lock_slow() {
  for (int i = 0; i < kSpins; ++i) {
    uintptr_t expected = 0;
    if (__atomic_load_n(&state_, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&state_, &expected, self(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return;
    }
    pause_cpu();
  }
  const int saved = errno;
  for (;;) {
    uintptr_t seen = 0;
    if (__atomic_compare_exchange_n(&state_, &seen, self() | 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      break;
    if ((seen & 1) == 0 &&
        !__atomic_compare_exchange_n(&state_, &seen, seen | 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      continue;
    }
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(seen | 1), nullptr, nullptr, 0);
  }
  errno = saved;
}

void Lock::wake_one() {
  const int saved = errno;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace hummock::os
