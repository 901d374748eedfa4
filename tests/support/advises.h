// Counts how often the system is asked to take pages back, once os::calls.advise is count_advise.
#ifndef HUMMOCK_TESTS_ADVISES_H
#define HUMMOCK_TESTS_ADVISES_H

#include "os/os.h"

namespace support {

inline const hummock::os::Calls real_calls = hummock::os::calls;
inline size_t advises;

inline int count_advise(void* address, size_t size, int advice) {
  ++advises;
  return real_calls.advise(address, size, advice);
}

}  // namespace support

#endif  // HUMMOCK_TESTS_ADVISES_H
