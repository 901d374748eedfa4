// A mutual exclusion lock that needs no initialisation and calls no malloc.
#ifndef HUMMOCK_OS_LOCK_H
#define HUMMOCK_OS_LOCK_H

#include <stdint.h>

#include "os/thread.h"

namespace hummock::os {

// Sleeps while the word has this value; may return without reason. Keeps errno.
void wait_while(const uintptr_t* word, uintptr_t value);
// Wakes one of those who sleep so.
void wake_waiter(const uintptr_t* word);

// States: 0 free; the holder's thread pointer; the same + 1: somebody may sleep. Who sleeps has set the
// bit, and takes the lock with it, so every sleeper is woken by some later unlock.
class Lock {
 public:
  void lock() {
    if (!try_lock()) lock_slow();
  }

  bool try_lock() {
    uintptr_t expected = 0;
    // acquire: pairs with the release in unlock(), so that we see what the last holder wrote.
    return __atomic_compare_exchange_n(&state_, &expected, self(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
  }

  void unlock() {
    // release: pairs with the acquire of the next holder.
    if ((__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) & 1) != 0) wake_one();
  }

  // For who knows that no other thread is left: somebody was stopped inside.
  bool is_held() const { return __atomic_load_n(&state_, __ATOMIC_RELAXED) != 0; }

  // For the handlers of fork. A fork in a signal handler may have interrupted this very thread inside
  // the lock: it then stays held, in parent and child, until the interrupted code lets it go.
  void lock_for_fork() {
    if ((__atomic_load_n(&state_, __ATOMIC_RELAXED) & ~uintptr_t{1}) == self()) {
      ++forks_inside_;
    } else {
      lock();
    }
  }
  void unlock_after_fork() {
    if (forks_inside_ != 0) {
      --forks_inside_;
    } else {
      unlock();
    }
  }
  // In the child only the forking thread is left: nobody sleeps, and it is the holder.
  void unlock_in_child() {
    if (forks_inside_ != 0) {
      --forks_inside_;
    } else {
      __atomic_store_n(&state_, 0, __ATOMIC_RELAXED);
    }
  }

 private:
  static uintptr_t self() { return thread_address(); }
  void lock_slow();
  void wake_one();

  uintptr_t state_ = 0;
  uint32_t forks_inside_ = 0;  // guarded by the lock
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LOCK_H
