#include "space/lending.h"

#include "base/message.h"
#include "os/lock.h"

namespace hummock::space {
namespace {

constexpr int kSpins = 40;  // as long as a call or two inside take: longer waits are for who does not run

}  // namespace

void Lending::lock_slow(uint32_t me) {
  if (is_mine(me) && for_fork_) return;
  if (is_mine(me)) base::die(base::Line() << "malloc or free in a signal handler that interrupted one");
  for (int i = 0; i < kSpins; ++i) {
    if (__atomic_load_n(&holder_, __ATOMIC_RELAXED) == 0 && take(me)) return;
    os::pause_cpu();
  }
  // Where the kernel knows no such lock, or not the holder, it sleeps like the others.
  if (os::is_real_time() && os::lock_lending(&holder_)) return;
  sleep_for_it(me);
}

void Lending::sleep_for_it(uint32_t me) {
  __atomic_fetch_add(&sleepers_, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    const uint32_t seen = __atomic_load_n(&turn_, __ATOMIC_SEQ_CST);
    __atomic_store_n(&awake_, 0, __ATOMIC_SEQ_CST);
    if (take(me)) break;
    os::sleep_while(&turn_, seen);
  }
  __atomic_fetch_sub(&sleepers_, 1, __ATOMIC_SEQ_CST);
}

void Lending::wake_one() {
  if (__atomic_exchange_n(&awake_, 1, __ATOMIC_SEQ_CST) != 0) return;
  __atomic_fetch_add(&turn_, 1, __ATOMIC_SEQ_CST);
  os::wake_sleepers(&turn_, 1);
}

void Lending::lock_for_fork() {
  if (is_mine(os::futex_number())) {
    ++forks_inside_;
  } else {
    lock();
    for_fork_ = true;
  }
}

void Lending::unlock_after_fork() {
  if (forks_inside_ != 0) {
    --forks_inside_;
  } else {
    for_fork_ = false;
    unlock();
  }
}

// The only thread of the child holds it, by its number in the parent; nobody sleeps.
void Lending::unlock_in_child() {
  sleepers_ = awake_ = 0;
  const bool inside = forks_inside_ != 0;
  if (inside) {
    --forks_inside_;
  } else {
    for_fork_ = false;
  }
  __atomic_store_n(&holder_, inside ? os::futex_number() : 0, __ATOMIC_RELAXED);
}

}  // namespace hummock::space
