// Memory of slabs whose owner does not look at what others free there, because its thread waits or is busy
// elsewhere. Any thread that ticks purges their free pages.
#ifndef HUMMOCK_HEAP_IDLE_H
#define HUMMOCK_HEAP_IDLE_H

#include "heap/observer.h"
#include "pages/pages.h"
#include "slab/gone.h"

namespace hummock::heap {

enum class Idle : uint8_t {
  nothing,
  looking,  // a round is under way, and nothing has been freed since it began
  freed,    // blocks of somebody else's slab
};
extern Idle idle;  // atomic, relaxed: all that follows from it is looked at under a lock

inline void note_freed() {
  if (relaxed(idle) != Idle::freed) set_relaxed(idle, Idle::freed);
}

// Slow paths then call tick().
inline bool tick_pending() {
  return pages::any_due() || relaxed(idle) != Idle::nothing;
}

// pages::purge_due(), and a look at some slabs of the process, with at most so many system calls. Cheap when
// nothing is due. True if the last timed tick is a while ago.
bool tick(unsigned calls = pages::kMostCalls);
inline constexpr unsigned kCallsAfterFree = pages::kMostCalls - 1;  // the free may have made one
// Call it at the end of a free that may have flushed: a flush ends many slabs at times, and all of them
// together must cost few system calls.
inline void tick_if_behind() {
  if (pages::is_behind()) tick(kCallsAfterFree);
}

// Looks at all slabs at once, however recently blocks were freed there.
void purge_idle();

// A thread that has handed over 64 KiB of others' blocks looks at some slabs, if much waits for the owners of
// all slabs. A round takes 2 MiB of such frees. True: it could not do all that it found, so the next
// hand-over looks again.
inline constexpr uint32_t kFreedPerLook = 64 << 10;
bool look_after_frees();
// Others' frees have just emptied the slab, or nearly: it waits for a purge of its pages. Each thread's next
// frees of others' blocks work that off, until nothing waits. Where far too much is free, threads wait for
// each other's turn.
void note_emptied(SlabHeader* slab);
void purge_emptied();
extern bool emptied_wait;  // atomic, relaxed: a hint
// What one call may do for a purge.
inline constexpr unsigned kCallsPerLook = 3;
inline constexpr size_t kWalkedPerLook = 416;  // blocks
// Makes the next ticks purge all that is free now, except what is in thread caches. False: decay_ms is never.
bool ask_trim();

void idle_at_fork(os::ForkStep step);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_IDLE_H
