// A heap's inbox: slabs of which others have freed so much that their owner is to look at them. The queued
// flag in a slab's remote word says that it is in one inbox, or on its way there: docs/protocols.md.
#ifndef HUMMOCK_HEAP_INBOX_H
#define HUMMOCK_HEAP_INBOX_H

#include "heap/heap.h"

namespace hummock::heap {

// Puts a slab whose queued flag the caller set into its owner's inbox. The flag makes the caller the only one
// to do so, and inbox_next its own until then. False: nobody is there to read the inbox.
bool post(SlabHeader* slab);
// Clears the queued flag of a slab that is not the caller's, and acts on what came back meanwhile.
void unqueue(SlabHeader* slab);

// ---- For the inbox's heap: its thread, or who gives it up.

inline bool has_posted(const Heap* heap) {
  return heap->posted != nullptr || __atomic_load_n(&heap->inbox, __ATOMIC_RELAXED) != nullptr;
}
// Ends some of the slabs, or drains them. True: there are more.
bool read_inbox(Heap* heap);
// Looks at all slabs of the heap as at those that others posted. No slab is current then.
void settle_slabs(Heap* heap);
// Nobody will read it. A freer who comes late finds nobody, and looks at the slab itself: by then it is
// shared, or will be by us, or it is somebody else's.
void seal_inbox(Heap* heap);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_INBOX_H
