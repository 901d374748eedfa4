#include "os/lock.h"

namespace hummock::os {
namespace {

constexpr int kSpins = 100;  // critical sections are short: most waits end before a sleep would begin

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

void Lock::lock_slow() {
  for (int i = 0; i < kSpins; ++i) {
    uintptr_t expected = 0;
    if (__atomic_load_n(&state_, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&state_, &expected, self(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return;
    }
    pause_cpu();
  }
  for (;;) {
    uintptr_t seen = 0;
    if (__atomic_compare_exchange_n(&state_, &seen, self() | 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      break;
    if ((seen & 1) == 0 &&
        !__atomic_compare_exchange_n(&state_, &seen, seen | 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      continue;
    }
    wait_while(&state_, seen | 1);
  }
}

void Lock::wake_one() {
  wake_waiter(&state_);
}

}  // namespace hummock::os
