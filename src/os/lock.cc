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

void Lock::lock_slow() {
  for (int i = 0; i < kSpins; ++i) {
    uint32_t expected = 0;
    if (__atomic_load_n(&state_, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&state_, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return;
    }
    pause_cpu();
  }
  const int saved = errno;
  while (__atomic_exchange_n(&state_, 2, __ATOMIC_ACQUIRE) != 0) {
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  }
  errno = saved;
}

void Lock::wake_one() {
  const int saved = errno;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace hummock::os
