// Windows has vectored handlers in place of signals; nothing here uses them yet.
#include "trace/faults.h"

namespace hummock::trace {

bool watch_faults(void (*)(const Fault&)) {
  return false;
}

unsigned callers_at(const Fault&, void**, unsigned) {
  return 0;
}

}  // namespace hummock::trace
