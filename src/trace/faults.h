// Faults: the program touches memory that nobody may touch.
#ifndef HUMMOCK_TRACE_FAULTS_H
#define HUMMOCK_TRACE_FAULTS_H

#include <stdint.h>

namespace hummock::trace {

struct Fault {
  enum class Access : uint8_t { unknown, read, write };
  const void* address;
  Access access;
  const void* context;  // the thread, as the system shows it
};

// `watcher` is called with each fault of the process from now on, by the thread that faulted, in a signal
// handler. It may end the process; when it returns, the fault goes to whoever had it before: a handler of the
// program's, or the process ends as ever. A handler that the program sets later comes in its place. Call
// once. False: the system refused, or this one has no such thing.
bool watch_faults(void (*watcher)(const Fault&));

// As callers() in trace/backtrace.h, of the thread that faulted: the first is where it did. 0: unknown.
unsigned callers_at(const Fault& fault, void** frames, unsigned most);

}  // namespace hummock::trace

#endif  // HUMMOCK_TRACE_FAULTS_H
