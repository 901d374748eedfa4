// Large pages on Windows: memory in pieces of 2 MiB, locked, taken and given back only as a whole, and
// only for a user who has the privilege "Lock pages in memory". There is nothing like transparent ones.
#include <windows.h>

#include "base/options.h"
#include "os/lock.h"
#include "os/windows/extra.h"

namespace hummock::os {
namespace {

enum class State : uint32_t { unasked, off, unsupported, denied, granted };

Lock<Rank::large_pages> lock;
State state;         // atomic: release after what describes it
uint32_t denial;     // the error. Guarded by lock.
size_t minimum;      // bytes of a large page. Guarded by lock.
size_t large_bytes;  // in large pages; atomic, relaxed

// 0, or the error that stands between us and the privilege.
uint32_t acquire_privilege() {
  void* token = nullptr;
  LUID luid;
  if (!calls.open_process_token(&token)) return calls.last_error();
  uint32_t error = 0;
  if (!calls.lookup_lock_memory(&luid)) {
    error = calls.last_error();
  } else {
    calls.set_last_error(0);
    // The call succeeds, too, when it granted nothing: then the error is 1300, not all assigned.
    const bool called = calls.adjust_privilege(token, &luid);
    error = calls.last_error();
    if (!called && error == 0) error = ERROR_ACCESS_DENIED;
  }
  CloseHandle(token);
  return error;
}

State current() {
  const State now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (now != State::unasked) return now;
  ask_for_large_pages();
  return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

// Locked memory is nobody else's: the rest of the program and the system keep half of all there is.
bool leaves_enough(size_t size) {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  if (!GlobalMemoryStatusEx(&memory)) return false;
  const uint64_t after = uint64_t{__atomic_load_n(&large_bytes, __ATOMIC_RELAXED)} + size;
  const bool chosen = options::values.huge_max != 0;  // who sets a bound knows what to leave
  return memory.ullAvailPhys / 8 * 7 >= size && (chosen || after <= memory.ullTotalPhys / 2);
}

}  // namespace

void ask_for_large_pages() {
  KeepError keep;
  LockGuard guard(lock);
  State now = State::granted;
  denial = 0;
  minimum = calls.large_page_minimum();
  if (options::values.huge_pages == options::HugePages::off) {
    now = State::off;
  } else if (minimum == 0 || kHugePage % minimum != 0) {
    now = State::unsupported;
  } else {
    denial = acquire_privilege();
    if (denial != 0) now = State::denied;
  }
  __atomic_store_n(&state, now, __ATOMIC_RELEASE);
}

bool large_pages_granted() {
  return current() == State::granted;
}

void describe_large_pages(base::Line& line) {
  const State now = current();
  LockGuard guard(lock);
  switch (now) {
    case State::off:
      line << "not asked for, huge pages disabled by the option huge_pages";
      break;
    case State::denied:
      line << "denied, huge pages disabled (" << error_name(static_cast<int>(denial)) << ")";
      break;
    case State::granted:
      line << "granted, huge pages enabled (of " << minimum / 1024 << "k)";
      break;
    default:
      line << "not asked for, huge pages disabled: this system has none";
      break;
  }
}

void* map_set_aside(size_t size, size_t align, size_t page, MayStand may, int* error) {
  KeepError keep;
  *error = ERROR_INVALID_PARAMETER;
  const State now = current();
  if (page != kHugePage || now == State::off || now == State::unsupported) return nullptr;
  *error = ERROR_WORKING_SET_QUOTA;
  if (!leaves_enough(size)) return nullptr;
  void* found = place(size, align, 0, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, may);
  if (found == nullptr) {
    *error = static_cast<int>(calls.last_error());
    return nullptr;
  }
  *error = 0;
  __atomic_fetch_add(&large_bytes, size, __ATOMIC_RELAXED);
  return found;
}

HugeBytes huge_bytes_in_use() {
  return {0, __atomic_load_n(&large_bytes, __ATOMIC_RELAXED)};
}

const char* error_name(int error) {
  switch (error) {
    case ERROR_NOT_ALL_ASSIGNED:
      return "error 1300: the user lacks the privilege \"Lock pages in memory\"";
    case ERROR_PRIVILEGE_NOT_HELD:
      return "error 1314: the user lacks the privilege \"Lock pages in memory\"";
    case ERROR_NO_SYSTEM_RESOURCES:
      return "error 1450: no free memory in pieces of 2 MiB is left, it is fragmented";
    case ERROR_WORKING_SET_QUOTA:
      return "too little memory would be left for the rest";
    case ERROR_COMMITMENT_LIMIT:
      return "error 1455: the commit limit (memory and paging file) is reached";
    case ERROR_NOT_ENOUGH_MEMORY:
      return "error 8: not enough memory or address space";
    case ERROR_INVALID_PARAMETER:
      return "error 87: this system does not do it";
    case ERROR_ACCESS_DENIED:
      return "error 5: access denied";
    case ERROR_PATH_NOT_FOUND:
      return "error 3: there is no such folder";
    default:
      return "an unknown error";
  }
}

// ---- What is not to be had ------------------------------------------------------------------------

int advise_huge(void*, size_t, bool) {
  return ERROR_INVALID_PARAMETER;
}
Setting transparent_setting(bool, const char** why) {
  *why = "Windows has no transparent huge pages";
  return Setting::denied;
}
int collapse(void*, size_t) {
  return ERROR_INVALID_PARAMETER;
}
bool find_touched(void*, size_t, unsigned char*) {
  return false;
}
int populate(void*, size_t) {
  return ERROR_INVALID_PARAMETER;
}
bool replace_by_small(void*, size_t) {
  return false;
}

}  // namespace hummock::os
