// The lock of the process's own space. Who waits sleeps; a thread of a real-time policy lends the holder its
// priority while it waits, and the lock is passed on to it. The others take it as they come, so that a thread
// that is running need not wait for one that must be woken first.
#ifndef HUMMOCK_SPACE_LENDING_H
#define HUMMOCK_SPACE_LENDING_H

#include "os/sleep.h"

namespace hummock::space {

// States of `holder`: 0 free; the holder's number; with kPassOn: the kernel knows who waits, and passes it
// on.
//
// Sleepers: who will sleep counts itself, notes `turn`, says that nobody is on the way (`awake`), tries once
// more, and sleeps while `turn` is what it was. Who leaves frees the word and then looks: if somebody is
// counted and nobody is on the way, somebody is from now on: `turn` changes, one is woken. All of these are
// sequentially consistent. So either who sleeps saw the word free, or who left saw it counted; and where it
// saw one on the way, that one has yet to try, and to say so, or it is the sleeper, who finds `turn` changed.
class Lending {
 public:
  void lock() {
    const uint32_t me = os::futex_number();
    // acquire: pairs with the release in unlock().
    if (__builtin_expect(!take(me), false)) lock_slow(me);
  }

  void unlock() {
    if (__builtin_expect(for_fork_, false)) return;
    uint32_t expected = os::futex_number();
    if (__builtin_expect(
            !__atomic_compare_exchange_n(&holder_, &expected, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED),
            false)) {
      os::unlock_lending(&holder_);
    }
    if (__builtin_expect(__atomic_load_n(&sleepers_, __ATOMIC_SEQ_CST) != 0, false)) wake_one();
  }

  // For the handlers of fork. Held for one, its holder passes through it: a handler of the program's that
  // allocates may run before these, or after.
  void lock_for_fork();
  void unlock_after_fork();
  void unlock_in_child();

 private:
  static constexpr uint32_t kPassOn = 0x8000'0000;
  static constexpr uint32_t kNumber = 0x3FFF'FFFF;  // bit 30 is the kernel's, too

  bool take(uint32_t me) {
    uint32_t expected = 0;
    return __atomic_compare_exchange_n(&holder_, &expected, me, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  }
  bool is_mine(uint32_t me) const { return (__atomic_load_n(&holder_, __ATOMIC_RELAXED) & kNumber) == me; }
  void lock_slow(uint32_t me);
  void sleep_for_it(uint32_t me);
  void wake_one();

  uint32_t holder_;
  uint32_t sleepers_;
  uint32_t awake_;  // 1: somebody was woken, and has not tried yet
  uint32_t turn_;
  uint32_t forks_inside_;  // guarded by the lock, as is the next
  bool for_fork_;
};

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_LENDING_H
