// Large pages on Windows: memory in pieces of 2 MiB, locked, taken and given back only as a whole, and
// only for a user who has the privilege "Lock pages in memory".
#include <windows.h>

#include "base/bits.h"
#include "base/options.h"
#include "os/lock.h"
#include "os/windows.h"

namespace hummock::os::large {
namespace {

constexpr uint64_t kFirstPause = 250;    // ms: a refusal may take the system a long time
constexpr uint64_t kLastPause = 64'000;  // doubled up to this
constexpr size_t kMostChunk = 32 << 20;

enum class State : uint32_t { unasked, off, unsupported, denied, granted };

Lock lock;
// Guarded by lock.
State state;
uint32_t denial;        // the error
size_t page;            // bytes of a large page
uint64_t pause_ms;      // after the last refusal
uint64_t next_try;      // ms
size_t chunk;           // bytes to ask for: halved by refusals, doubled by successes
size_t mapped;
bool told_full;

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
    const bool called = calls.adjust_privilege(token, &luid);
    // The call succeeds, too, when it granted nothing: then the error is 1300, not all assigned.
    if (!called || calls.last_error() != 0) error = calls.last_error();
  }
  CloseHandle(token);
  return error;
}

const char* reason_of(uint32_t error) {
  switch (error) {
    case ERROR_NOT_ALL_ASSIGNED:
    case ERROR_PRIVILEGE_NOT_HELD:
      return "the user lacks the privilege \"Lock pages in memory\"";
    case ERROR_NO_SYSTEM_RESOURCES:
      return "no free memory in pieces of that size: it is fragmented";
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return "not enough memory";
    case ERROR_INVALID_PARAMETER:
      return "this system does not do it";
    default:
      return "refused";
  }
}

// The most that is locked: what the rest of the program and the system need stays theirs.
size_t cap(const MEMORYSTATUSEX& memory) {
  const size_t limit = options::values.huge_max;
  if (limit != 0) return limit;
  const uint64_t half = memory.ullTotalPhys / 2;
  return half < SIZE_MAX ? static_cast<size_t>(half) : SIZE_MAX;
}

// How much to ask for now; 0: nothing. Called with the lock held.
size_t due(size_t wish, size_t least, bool* full) {
  if (state != State::granted || now_ms() < next_try) return 0;
  size_t size = wish < chunk ? wish : chunk;
  if (size < least) size = least;
  size = base::align_up(size, page);
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  GlobalMemoryStatusEx(&memory);
  const size_t most = cap(memory);
  *full = size > most || mapped > most - size;
  const bool there = memory.ullAvailPhys / 8 * 7 >= size;
  return size <= wish && !*full && there ? size : 0;
}

void note_success(size_t size) {
  LockGuard guard(lock);
  mapped += size;
  pause_ms = 0;
  chunk = chunk < kMostChunk ? chunk * 2 : kMostChunk;
}

void note_refusal(uint32_t error, size_t size, uint64_t since) {
  uint64_t wait;
  {
    LockGuard guard(lock);
    pause_ms = pause_ms == 0 ? kFirstPause : pause_ms * 2 < kLastPause ? pause_ms * 2 : kLastPause;
    next_try = now_ms() + pause_ms;
    wait = pause_ms;
    if (chunk > page) chunk /= 2;
  }
  base::Line reason("");
  reason << "error " << error << ": " << reason_of(error) << "; next try in " << wait << " ms";
  log::event(since, size, nullptr, "Alloc LP failed -> fallback", 0, &reason);
}

}  // namespace

void enable() {
  KeepError keep;
  LockGuard guard(lock);
  pause_ms = next_try = 0;
  chunk = kMostChunk;
  denial = 0;
  page = calls.large_page_minimum();
  if (options::values.huge_pages == options::HugePages::off) {
    state = State::off;
  } else if (page == 0) {
    state = State::unsupported;
  } else {
    denial = acquire_privilege();
    state = denial == 0 ? State::granted : State::denied;
  }
}

void describe(base::Line& line) {
  LockGuard guard(lock);
  line << "SeLockMemoryPrivilege: ";
  switch (state) {
    case State::unasked:
      line << "not asked for yet";
      break;
    case State::off:
      line << "not asked for, huge pages disabled by the option huge_pages";
      break;
    case State::unsupported:
      line << "not asked for, huge pages disabled: this system has none";
      break;
    case State::denied:
      line << "denied, huge pages disabled (error " << denial << ": " << reason_of(denial) << ")";
      break;
    case State::granted:
      line << "granted, huge pages enabled (of " << page / 1024 << "k)";
      break;
  }
}

void* map(size_t* size, size_t least, size_t align) {
  const uint64_t since = log::ticks();
  bool full = false;
  bool say_so;
  size_t ask;
  {
    LockGuard guard(lock);
    ask = due(*size, least, &full);
    say_so = full && !told_full;
    told_full = full;
  }
  if (say_so) {
    const base::Line reason = base::Line("") << "as much is in large pages as huge_max allows";
    log::event(since, *size, nullptr, "Alloc LP failed -> fallback", 0, &reason);
  }
  if (ask == 0) return nullptr;
  void* found = place(ask, align, 0, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES);
  if (found == nullptr) {
    note_refusal(calls.last_error(), ask, since);
    return nullptr;
  }
  note_success(ask);
  log::event(since, ask, found, "Alloc LP", static_cast<ptrdiff_t>(ask));
  *size = ask;
  return found;
}

size_t mapped_bytes() {
  LockGuard guard(lock);
  return mapped;
}

}  // namespace hummock::os::large
