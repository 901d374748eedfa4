// Tells the program that a limit was reached.
#ifndef HUMMOCK_HEAP_LIMIT_NOTICE_H
#define HUMMOCK_HEAP_LIMIT_NOTICE_H

#include "hummock/hummock.h"
#include "pages/limits.h"

namespace hummock::heap {

void set_limit_handler(hummock_limit_handler handler);

// Calls the handler if a limit was reached since it was called last. The handler may allocate and free: no
// lock is held, and a malloc has its block.
void tell_of_limits();

// What was refused is asked for once more, so nobody is told yet. Another thread's
// refusal just now may be lost.
void forget_refusals();

// In the child of a fork: another thread may have been told just then.
void forget_teller();

// At the end of a malloc that left the fast path.
inline void tell_if_limited() {
  if (__builtin_expect(relaxed(pages::limits.soft) != 0, false)) tell_of_limits();
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LIMIT_NOTICE_H
