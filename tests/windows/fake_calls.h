// System calls that grant, deny or count what the real ones under Wine do not: large pages first of all.
#ifndef HUMMOCK_TESTS_WINDOWS_FAKE_CALLS_H
#define HUMMOCK_TESTS_WINDOWS_FAKE_CALLS_H

#include "game.h"
#include "os/windows/extra.h"

namespace fake {

inline hummock::os::Calls real;
inline DWORD large_error;               // of the next calls for large pages; 0: they succeed
inline size_t large_most = ~size_t{0};  // larger ones fail with 1450
inline unsigned large_calls;
inline unsigned large_granted;
inline DWORD privilege_error;  // 1300: the call succeeds and grants nothing
inline bool privilege_call = true;
inline unsigned privilege_calls;
inline size_t large_minimum = 2 << 20;
inline long commits_left = -1;  // -1: as many as wanted

inline void* virtual_alloc(void* at, size_t size, uint32_t type, uint32_t protection) {
  if ((type & MEM_LARGE_PAGES) != 0) {
    ++large_calls;
    CHECK(type == (MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES));
    CHECK(size % large_minimum == 0 && reinterpret_cast<uintptr_t>(at) % large_minimum == 0);
    const DWORD error = large_error != 0 ? large_error : size > large_most ? 1450 : 0;
    if (error != 0) return SetLastError(error), nullptr;
    ++large_granted;
    return real.virtual_alloc(at, size, type & ~static_cast<uint32_t>(MEM_LARGE_PAGES), protection);
  }
  const bool commits = (type & MEM_COMMIT) != 0;
  if (commits && commits_left == 0) return SetLastError(ERROR_COMMITMENT_LIMIT), nullptr;
  if (commits && commits_left > 0) --commits_left;
  return real.virtual_alloc(at, size, type, protection);
}

// Parts of large pages cannot be taken back, nor can they all be decommitted.
inline bool virtual_free(void* at, size_t size, uint32_t type) {
  return real.virtual_free(at, size, type);
}

inline bool adjust_privilege(void*, const void*) {
  ++privilege_calls;
  SetLastError(privilege_error);
  return privilege_call;
}

inline bool lookup(void* luid) {
  memset(luid, 0, sizeof(LUID));
  return true;
}

inline void install() {
  real = hummock::os::calls;
  hummock::os::calls.virtual_alloc = virtual_alloc;
  hummock::os::calls.large_page_minimum = [] { return large_minimum; };
  hummock::os::calls.lookup_lock_memory = lookup;
  hummock::os::calls.adjust_privilege = adjust_privilege;
}

}  // namespace fake

#endif  // HUMMOCK_TESTS_WINDOWS_FAKE_CALLS_H
