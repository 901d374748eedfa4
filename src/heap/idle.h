// Memory of slabs whose owner does not look at what others free there: a thread that waits, or has better to
// do. Any thread that ticks gives their free pages back.
#ifndef HUMMOCK_HEAP_IDLE_H
#define HUMMOCK_HEAP_IDLE_H

#include "heap/observer.h"
#include "pages/pages.h"

namespace hummock::heap {

enum class Idle : uint8_t {
  nothing,
  looking,  // a round is under way, and nothing has been freed since it began
  freed,    // blocks of somebody else's slab
};
extern Idle idle;  // atomic, relaxed: what it leads to is looked at under a lock

inline void note_freed() {
  if (relaxed(idle) != Idle::freed) set_relaxed(idle, Idle::freed);
}

// Slow paths then call tick().
inline bool tick_pending() {
  return pages::tick_pending() || relaxed(idle) != Idle::nothing;
}

// pages::tick(), and some of the slabs of the process. Cheap when nothing is due. True when a while had
// passed since the last time.
bool tick();

// All slabs at once, however lately blocks were freed there.
void purge_idle();

// A thread has handed over 64 KiB of others' blocks: what it frees pays for a look at some slabs, so that
// nobody has to call later. A round takes 2 MiB of such frees.
inline constexpr uint32_t kFreedPerLook = 64 << 10;
void look_after_frees();
// What is free now, but for what threads have in their caches, goes with the next ticks. False: decay_ms says
// that nothing ever goes.
bool ask_trim();

// For fork.
void lock_idle();
void unlock_idle();
void reset_idle();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_IDLE_H
