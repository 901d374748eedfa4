#include "heap/limit_notice.h"

#include "pages/limits.h"
#include "pages/pages.h"

namespace hummock::heap {
namespace {

// Atomic: release when it is set, acquire by who calls it, for what the program wrote before.
hummock_limit_handler handler;

bool telling;  // atomic, exchanged: the handler's own calls bring no other

// Atomic, exchanged: who changes one of them tells of it, once.
bool was_over;
size_t refusals_told;

}  // namespace

bool notice_due;

void set_limit_handler(hummock_limit_handler wanted) {
  __atomic_store_n(&refusals_told, pages::limit_refusals(), __ATOMIC_RELAXED);
  set_relaxed(was_over, false);  // a new one is told, too, of what is over already
  __atomic_store_n(&handler, wanted, __ATOMIC_RELEASE);
}

void tell_of_limits() {
  set_relaxed(notice_due, false);
  const hummock_limit_handler call = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
  if (call == nullptr || __atomic_exchange_n(&telling, true, __ATOMIC_ACQUIRE)) return;
  const size_t refusals = pages::limit_refusals();
  if (__atomic_exchange_n(&refusals_told, refusals, __ATOMIC_RELAXED) != refusals)
    call(HUMMOCK_LIMIT_HARD, pages::in_use_bytes(), relaxed(pages::limits.hard));
  const bool over = pages::is_over_soft_limit();
  if (__atomic_exchange_n(&was_over, over, __ATOMIC_RELAXED) != over && over)
    call(HUMMOCK_LIMIT_SOFT, pages::in_use_bytes(), relaxed(pages::limits.soft));
  __atomic_store_n(&telling, false, __ATOMIC_RELEASE);
}

}  // namespace hummock::heap
