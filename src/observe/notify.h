// Tells `hummock run` that the library has started.
#ifndef HUMMOCK_OBSERVE_NOTIFY_H
#define HUMMOCK_OBSERVE_NOTIFY_H

namespace hummock::observe {

// When HUMMOCK_RUN_NOTIFY=<descriptor>:<inode> names a pipe of this process, writes one byte to it ('1'
// when the process's malloc is ours, else '0') and closes it; else does nothing. Call once, at start.
// Keeps errno.
void notify_started(bool (*is_active)());

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_NOTIFY_H
