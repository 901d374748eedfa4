// A mutual exclusion lock of four bytes that needs no initialisation and calls no malloc.
#ifndef HUMMOCK_OS_LOCK_H
#define HUMMOCK_OS_LOCK_H

#include <stdint.h>

namespace hummock::os {

// States: 0 free, 1 held, 2 held and somebody may sleep. Whoever finds it held sets 2 before sleeping,
// and unlock wakes one when it replaces a 2; so a sleeper is always woken by some later unlock.
class Lock {
 public:
  void lock() {
    uint32_t expected = 0;
    // acquire: pairs with the release in unlock(), so that we see what the last holder wrote.
    if (__atomic_compare_exchange_n(&state_, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    lock_slow();
  }

  void unlock() {
    // release: pairs with the acquire of the next holder.
    if (__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) == 2) wake_one();
  }

  // For the child of a fork, where the holder no longer exists.
  void reset() { __atomic_store_n(&state_, 0, __ATOMIC_RELAXED); }

 private:
  void lock_slow();
  void wake_one();

  uint32_t state_ = 0;
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
