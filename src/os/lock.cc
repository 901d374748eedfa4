#include "os/lock.h"

#include "base/message.h"
#include "base/system.h"

namespace hummock::os {

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

namespace {

constexpr int kSpins = 100;  // critical sections are short: most waits end before a sleep would begin

// A handler of signals that interrupted this thread inside the lock, or that runs as it aborts there: it
// would wait for itself.
[[noreturn]] void stop_recursion(Rank rank) {
  base::say(base::Line() << "malloc called inside malloc, under the lock \"" << name_of(rank)
                         << "\": by a signal handler?");
  base::stop_here();
}

}  // namespace

void LockWord::take_slow(Rank rank) {
  const uintptr_t self = thread_address();
  if (passes()) return;
  if ((__atomic_load_n(&state_, __ATOMIC_RELAXED) & ~(kWaited | kForks)) == self) stop_recursion(rank);
  for (int i = 0; i < kSpins; ++i) {
    if (__atomic_load_n(&state_, __ATOMIC_RELAXED) == 0 && take_free()) return;
    pause_cpu();
  }
  for (;;) {
    uintptr_t seen = 0;
    // acquire: as in take_free().
    if (__atomic_compare_exchange_n(&state_, &seen, self | kWaited, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      break;
    if ((seen & kWaited) == 0 && !__atomic_compare_exchange_n(&state_, &seen, seen | kWaited, false,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      continue;
    }
    wait_while(&state_, seen | kWaited);
  }
}

void LockWord::let_go_slow() {
  if (passes()) return;
  // release: as in let_go().
  if ((__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) & kWaited) != 0) wake_waiter(&state_);
}

bool LockWord::take_for_fork(Rank rank) {
  const uintptr_t state = __atomic_load_n(&state_, __ATOMIC_RELAXED);
  if ((state & ~(kWaited | kForks)) == thread_address()) {
    ++forks_inside_;
    return false;
  }
  if (!take_free()) take_slow(rank);
  __atomic_fetch_or(&state_, kForks, __ATOMIC_RELAXED);  // others may set kWaited at the same time
  return true;
}

bool LockWord::release_after_fork(bool in_child) {
  if (forks_inside_ != 0) {
    --forks_inside_;
    return false;
  }
  // release: as in let_go().
  const bool sleeps = (__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) & kWaited) != 0;
  if (sleeps && !in_child) wake_waiter(&state_);
  return true;
}

}  // namespace hummock::os
