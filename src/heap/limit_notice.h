// Tells the program that a limit was reached.
#ifndef HUMMOCK_HEAP_LIMIT_NOTICE_H
#define HUMMOCK_HEAP_LIMIT_NOTICE_H

#include "hummock/hummock.h"

namespace hummock::heap {

void set_limit_handler(hummock_limit_handler handler);

// Calls the handler if something has happened since it was called last. No lock is held.
void tell_of_limits();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LIMIT_NOTICE_H
