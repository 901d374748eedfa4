#include <signal.h>
#include <ucontext.h>

#include "base/keep_errno.h"
#include "trace/faults.h"

namespace hummock::trace {
namespace {

// Written before our handler is set, and never again.
void (*watcher)(const Fault&);
struct sigaction former;

Fault::Access access_of(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // of the processor's error code
  const greg_t error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error & kWrite) != 0 ? Fault::Access::write : Fault::Access::read;
#else
  static_cast<void>(context);
  return Fault::Access::unknown;
#endif
}

// A fault comes from the kernel; others may send the signal, too.
bool is_fault(const siginfo_t* info) {
  return info->si_code > 0;
}

// The usual end: back where the thread was, the same instruction faults again. What was sent is sent again.
void end_as_usual(int number, const siginfo_t* info) {
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(number, &usual, nullptr);
  if (!is_fault(info)) raise(number);
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0) return former.sa_sigaction(number, info, context);
  if (former.sa_handler == SIG_IGN && !is_fault(info)) return;
  if (former.sa_handler == SIG_IGN || former.sa_handler == SIG_DFL) return end_as_usual(number, info);
  former.sa_handler(number);
}

void on_signal(int number, siginfo_t* info, void* context) {
  {
    const base::KeepErrno keep;
    if (is_fault(info)) watcher({info->si_addr, access_of(context), context});
  }
  pass_on(number, info, context);
}

}  // namespace

bool watch_faults(void (*wanted)(const Fault&)) {
  const base::KeepErrno keep;
  watcher = wanted;
  // On the thread's stack for signals where it has one: a fault may be the overflow of the other.
  struct sigaction ours = {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGSEGV, nullptr, &former) == 0 && sigaction(SIGSEGV, &ours, nullptr) == 0;
}

}  // namespace hummock::trace
