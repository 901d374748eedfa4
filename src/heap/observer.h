// Somebody outside who asks what the heap does. Some of the slow paths, and ticks that come a while after the
// one before, look at one word; while it does not change, nothing else happens.
#ifndef HUMMOCK_HEAP_OBSERVER_H
#define HUMMOCK_HEAP_OBSERVER_H

#include "pages/slab_header.h"

namespace hummock::heap {

struct Observer {
  const uint32_t* asked;  // a word that others may write at any time. Atomic, relaxed; never null
  uint32_t seen;          // its value that needs no answer any more. Atomic, relaxed: a hint
  // Does a little of what was asked, with *calls to the system at most (pages::kMostCalls), and note_freed()
  // to be called again soon. Any slow path calls it, with locks down to `heap`.
  void (*serve)(unsigned* calls);
  void (*in_child)();  // after a fork, in the child, with all locks of the heap held
};
extern Observer observer;

inline bool is_asked() {
  return relaxed(*relaxed(observer.asked)) != relaxed(observer.seen);
}

// As if somebody asked: the region log wants figures.
inline void want_figures() {
  set_relaxed(observer.seen, relaxed(*relaxed(observer.asked)) - 1);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_OBSERVER_H
