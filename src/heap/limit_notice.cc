#include "heap/limit_notice.h"

#include "os/os.h"
#include "os/thread.h"
#include "pages/limits.h"
#include "pages/pages.h"

namespace hummock::heap {
namespace {

// Atomic: release when it is set, acquire by who calls it, for what the program wrote before.
hummock_limit_handler handler;

uintptr_t teller;  // atomic: the thread that calls it, or 0. The handler's own calls bring no other

// A program may go over the soft limit and under it with each call: it is told so often at most.
constexpr uint64_t kPauseMs = 10;

// Atomic, relaxed: written by the teller, and for a new handler.
bool was_over;
uint64_t told_at;  // ms
size_t refusals_told;

bool went_over() {
  const bool over = pages::is_over_soft_limit();
  if (over == relaxed(was_over)) return false;
  const uint64_t now = os::now_ms();
  if (over && now - relaxed(told_at) < kPauseMs) return false;  // a later call tells
  set_relaxed(was_over, over);
  if (over) set_relaxed(told_at, now);
  return over;
}

bool was_refused() {
  const size_t refusals = pages::limit_refusals();
  if (refusals == relaxed(refusals_told)) return false;
  set_relaxed(refusals_told, refusals);
  return true;
}

}  // namespace

void forget_refusals() {
  set_relaxed(refusals_told, pages::limit_refusals());
}

void set_limit_handler(hummock_limit_handler wanted) {
  forget_refusals();
  set_relaxed(was_over, false);  // a new one is told, too, of what is over already
  set_relaxed(told_at, uint64_t{0});
  __atomic_store_n(&handler, wanted, __ATOMIC_RELEASE);
}

void tell_of_limits() {
  const hummock_limit_handler call = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
  uintptr_t nobody = 0;
  // acquire: pairs with the release below, for what the last teller wrote.
  if (call == nullptr || !__atomic_compare_exchange_n(&teller, &nobody, os::thread_address(), false,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return;
  }
  const bool refused = was_refused();
  const bool over = went_over();
  if (refused) call(HUMMOCK_LIMIT_HARD, pages::in_use_bytes(), relaxed(pages::limits.hard));
  if (over) call(HUMMOCK_LIMIT_SOFT, pages::in_use_bytes(), relaxed(pages::limits.soft));
  if (refused || over) was_refused();  // what the handler itself asked for brings no other call
  __atomic_store_n(&teller, 0, __ATOMIC_RELEASE);
}

void forget_teller() {
  if (teller != os::thread_address()) teller = 0;
}

}  // namespace hummock::heap
