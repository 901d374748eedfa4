// Remote frees: blocks of other heaps. They gather in the heap's remote cache, and chains of them are handed
// over to their slabs.
#ifndef HUMMOCK_HEAP_REMOTE_H
#define HUMMOCK_HEAP_REMOTE_H

#include "heap/heap.h"
#include "heap/idle.h"
#include "shard/shard.h"
#include "slab/slab.h"

namespace hummock::heap {

// The link of a block in a heap's remote cache leads to the heap's address plus this.
inline constexpr uintptr_t kWaiting = 1;
inline uintptr_t waiting_in(const Heap* heap) {
  return slab::link_to(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(heap) + kWaiting));
}

// acquire: pairs with the order of a free's stores, link first. If we see its check, we see its link, too.
inline uintptr_t read_check(void* block) {
  return __atomic_load_n(&slab::check_word(block), __ATOMIC_ACQUIRE);
}
// The block's check word, to be read before the last look at whether the block is free. One that looks as in
// a list is changed first.
uint32_t note_check(void* block);
// Notes the check and takes that look; aborts with a message if the block is free.
uint32_t look_once_more(SlabHeader* slab, void* p);

inline void mark_waiting(uintptr_t mark, void* block) {
  if (!slab::kMarksLinks) return slab::set_link(block, mark, slab::kRemote);
  set_relaxed(slab::link_word(block), mark);
}

// Makes chains of the blocks, if they are enough, or else hands over some of the chains that wait.
void look_at_remote(Heap* heap);

// Puts p, of more than 8 bytes, into the heap's remote cache, to be handed over with others. `check`: as
// noted before the last look.
__attribute__((always_inline)) inline void add_remote(Heap* heap, SlabHeader* slab, void* p, uint32_t check) {
  RemoteCache& remote = heap->remote;
  const uint32_t i = remote.count;
  remote.blocks[i] = p;
  remote.slabs[i] = slab;
  remote.checks[i] = check;
  mark_waiting(waiting_in(heap), p);
  remote.count = i + 1;
  remote.bytes += slab::row_of(slab).block_size;
  const bool due = i >= remote.at_ease || remote.bytes >= kRemoteBytes;
  if (__builtin_expect(due, false)) look_at_remote(heap);
}
void release_remote(Heap* heap, SlabHeader* slab, void* p, uint32_t check);

// Several threads may free this block at once. This returns in one of them: the block is then the caller's,
// and looks free. In the others it reports the double free and aborts.
void claim_block(SlabHeader* slab, void* p);
// Hands over a single block that is the caller's.
void release_remote_now(SlabHeader* slab, void* p);
// Takes a step towards an empty remote cache. False: it is empty.
bool flush_some_remote(Heap* heap);
inline void flush_remote(Heap* heap) {
  while (flush_some_remote(heap)) {
  }
}
// Gives back a part of what others' blocks left free, if that is due.
void give_back_more(Heap* heap);
// Adds the rest of what the thread freed to slab::returned_bytes.
inline void settle_freed(Heap* heap) {
  slab::note_returned(static_cast<ptrdiff_t>(heap->uncounted));
  heap->uncounted = 0;
}

// What must follow a push that took a count over a bound: it posts the slab, or calls its shard. True: it
// looked at the slab, and may have ended it.
bool after_push(SlabHeader* slab, bool must_queue);
// slab::push_remote, and what must follow. The result is after_push's.
inline bool hand_over(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone = 0) {
  const slab::Pushed pushed = slab::push_remote(slab, first, last, count, gone);
  note_freed();
  const bool acts = pushed.must_queue || shard::must_settle(slab, pushed.old, count);
  return __builtin_expect(acts, false) && after_push(slab, pushed.must_queue);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_REMOTE_H
