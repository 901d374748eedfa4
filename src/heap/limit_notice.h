// Tells the program that a limit was reached.
#ifndef HUMMOCK_HEAP_LIMIT_NOTICE_H
#define HUMMOCK_HEAP_LIMIT_NOTICE_H

#include "hummock/hummock.h"
#include "pages/slab_header.h"

namespace hummock::heap {

void set_limit_handler(hummock_limit_handler handler);

// Calls the handler if something has happened since it was called last. No lock is held.
void tell_of_limits();

// A while has passed since that was looked at. Who finds out may be about to free, or hold a lock: the next
// malloc that leaves the fast path tells. Atomic, relaxed: a hint.
extern bool notice_due;
inline void tell_if_due() {
  if (__builtin_expect(relaxed(notice_due), false)) tell_of_limits();
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LIMIT_NOTICE_H
