// A mutual exclusion lock that needs no initialisation and calls no malloc.
#ifndef HUMMOCK_OS_LOCK_H
#define HUMMOCK_OS_LOCK_H

#include <stdint.h>

#include "os/lock_rank.h"
#include "os/lock_watch.h"
#include "os/thread.h"

namespace hummock::os {

// Between two looks at a word that another processor is about to write.
void pause_cpu();

// All before it is seen by all other threads before anything after it is done.
inline void full_fence() {
#if !defined(__SANITIZE_THREAD__)  // which knows no fences; what needs one reads and writes atomically
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Sleeps while the word has this value; may return without reason. Keeps errno.
void wait_while(const uintptr_t* word, uintptr_t value);
// Wakes one of those who sleep so.
void wake_waiter(const uintptr_t* word);

// States: 0 free; the holder's thread pointer, with kWaited: somebody may sleep, with kForks: held by who is
// about to fork. Who sleeps has set kWaited, and takes the lock with it, so every sleeper is woken by some
// later unlock.
//
// While a lock is held for a fork, its holder passes through it: a handler of fork that the program
// registered before ours runs while we hold all locks, and may allocate. Nobody else is inside then, so what
// the lock guards is whole.
class LockWord {
 public:
  // For who knows that no other thread is left: somebody was stopped inside.
  bool is_held() const { return __atomic_load_n(&state_, __ATOMIC_RELAXED) != 0; }

 protected:
  bool take_free() {
    uintptr_t expected = 0;
    // acquire: pairs with the release in let_go(), so that we see what the last holder wrote.
    return __atomic_compare_exchange_n(&state_, &expected, thread_address(), false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
  }
  void let_go() {
    uintptr_t expected = thread_address();
    // release: pairs with the acquire of the next holder.
    if (!__atomic_compare_exchange_n(&state_, &expected, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
      let_go_slow();
    }
  }
  // Held by this thread for a fork: lock() and unlock() change nothing.
  bool passes() const {
    return (__atomic_load_n(&state_, __ATOMIC_RELAXED) & ~kWaited) == (thread_address() | kForks);
  }
  // False: held by this very thread already, which a fork in a signal handler interrupted inside the lock.
  // It then stays held, in parent and child, until the interrupted code lets it go.
  bool take_for_fork(Rank rank);
  // In the child only the forking thread is left: nobody sleeps, and it is the holder.
  bool release_after_fork(bool in_child);

  void take_slow(Rank rank);

 private:
  static constexpr uintptr_t kWaited = 1;
  static constexpr uintptr_t kForks = 2;

  void let_go_slow();

  uintptr_t state_ = 0;
  uint32_t forks_inside_ = 0;  // guarded by the lock
};

template <Rank kRank>
class Lock : public LockWord {
 public:
  void lock() {
    if (kWatched && passes()) return;
    watch::before(this, kRank);
    if (!take_free()) take_slow(kRank);
    watch::taken(this, kRank);
  }

  bool try_lock() {
    watch::before_try(this);
    const bool got = take_free();
    watch::tried(this, kRank, got);
    return got;
  }

  void unlock() {
    if (kWatched && passes()) return;
    watch::before_release(this, kRank);
    let_go();
    watch::released(this);
  }

  // For the handlers of fork: it is held from the step before the fork to the one after it.
  void at_fork(ForkStep step) {
    if (step != ForkStep::before)
      return watch::released_after_fork(this, kRank, release_after_fork(step == ForkStep::in_child));
    watch::before_fork(this, kRank);
    watch::taken_for_fork(this, kRank, take_for_fork(kRank));
  }
};

template <Rank kRank>
class LockGuard {
 public:
  explicit LockGuard(Lock<kRank>& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock<kRank>& lock_;
};

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LOCK_H
