#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/sleep.h"

namespace hummock::os {
namespace {

long futex(const uint32_t* word, int operation, uint32_t value, uint32_t bits) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, bits);
}

}  // namespace

__thread ThreadWords thread_words __attribute__((tls_model("initial-exec"), visibility("hidden")));

uint32_t futex_number() {
  if (__builtin_expect(thread_words.number == 0, false))
    thread_words.number = static_cast<uint32_t>(syscall(SYS_gettid)) & 0xfffffff;
  return thread_words.number;
}

void forget_futex_number() {
  thread_words.number = 0;
}

void sleep_while(const uint32_t* word, uint32_t value, uint32_t who) {
  const base::KeepErrno keep;
  futex(word, FUTEX_WAIT_BITSET, value, who);
}

void wake_sleepers(const uint32_t* word, int most, uint32_t who) {
  const base::KeepErrno keep;
  futex(word, FUTEX_WAKE_BITSET, static_cast<uint32_t>(most), who);
}

bool is_real_time() {
  const base::KeepErrno keep;
  constexpr long kDeadline = 6;  // SCHED_DEADLINE
  const long answer = syscall(SYS_sched_getscheduler, 0);
  const long policy = answer < 0 ? SCHED_OTHER : answer & ~long{SCHED_RESET_ON_FORK};
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == kDeadline;
}

bool lock_lending(uint32_t* word) {
  const base::KeepErrno keep;
  return futex(word, FUTEX_LOCK_PI, 0, 0) == 0;
}

void unlock_lending(uint32_t* word) {
  const base::KeepErrno keep;
  futex(word, FUTEX_UNLOCK_PI, 0, 0);
}

bool prepare_to_fence_others() {
  const base::KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void fence_others() {
  const base::KeepErrno keep;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // A child of fork that the kernel made forget it.
  prepare_to_fence_others();
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace hummock::os
