// The region log: a line for each time address space or memory goes between the system and the allocator,
// appended to a file in one write, so that a crash loses nothing. Off unless the option `log` says so.
#ifndef HUMMOCK_OS_REGION_LOG_H
#define HUMMOCK_OS_REGION_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "os/thread.h"

namespace hummock::base {
class Line;
}

namespace hummock::os {

// The name of a file: `pattern` with %p (process), %t (time) and %% replaced; any other % stays as it is.
void expand_pattern(const char* pattern, char* out, size_t room);

// Opens the file and writes what the machine and the options are. Call once, when the options are read and
// before the first region. A file that cannot be opened is told on standard error, and there is no log.
void start_log();

// For fork. A child's first event opens a file of its own.
void log_at_fork(ForkStep step);

// True when events are logged; atomic, relaxed: what the log needs is set before a second thread exists.
extern bool log_on;
inline bool is_logging() {
  return __atomic_load_n(&log_on, __ATOMIC_RELAXED);
}

// A line beside the events: "name: text". Not in a child that has logged no event.
void log_note(const char* name, const base::Line& text);

// A line for the curves of `hummock log`: "figures: 0.298s live 1000k resident 2000k". One is due 20 ms after
// the last one, and later after a hundredth of the time that the program runs, so that a log stays short.
bool memory_line_due();
void log_memory(size_t live, size_t resident);

// Bytes of address space that the log has seen come and not go.
size_t logged_total();

// Called for each event, logged or not; null: nothing is. Locks may be held where it is called. Atomic:
// release when it is set, acquire by who calls it.
using EventHook = void (*)(const char* what, const void* address, size_t size);
extern EventHook event_hook;
inline void set_event_hook(EventHook hook) {
  __atomic_store_n(&event_hook, hook, __ATOMIC_RELEASE);
}
inline bool sees_events() {
  return is_logging() || __atomic_load_n(&event_hook, __ATOMIC_RELAXED) != nullptr;
}

// One call of the system. Made just before it; `log` after it writes the line.
class Event {
 public:
  Event() : start_(sees_events() ? begin() : 0) {}

  // `what` is "Alloc SP" and so on; `change` is what comes to (or goes from) the mapped total. `reason`, if
  // not null, says why or what more.
  void log(const char* what, const void* address, size_t size, ptrdiff_t change,
           const char* reason = nullptr) {
    if (start_ != 0) write(what, address, size, change, reason);
  }
  bool on() const { return start_ != 0; }

 private:
  static uint64_t begin();
  void write(const char* what, const void* address, size_t size, ptrdiff_t change, const char* reason);

  uint64_t start_;  // ns; 0: nobody looks
};

}  // namespace hummock::os

#endif  // HUMMOCK_OS_REGION_LOG_H
