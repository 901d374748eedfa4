// Frees into slabs of others: gathered per slab, handed over with one compare-and-swap.
#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "os/lock.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

// Puts a slab, whose queued flag the caller set, in its owner's inbox. The flag makes the caller the only
// one to do so, and inbox_next its own until then. False when nobody is there to read it.
bool post(SlabHeader* slab) {
  const uintptr_t owner = owner_of(slab) & ~kDirect;
  if (owner == kNobody || owner == kShared) return false;
  Heap* heap = reinterpret_cast<Heap*>(owner);
  SlabHeader* head = __atomic_load_n(&heap->inbox, __ATOMIC_RELAXED);
  do {
    if (head == kSealed) return false;
    slab->inbox_next = head;
    // release: pairs with the exchange in read_inbox.
  } while (!__atomic_compare_exchange_n(&heap->inbox, &head, slab, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
  return true;
}

}  // namespace

void hand_over(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone) {
  const slab::Pushed pushed = slab::push_remote(slab, first, last, count, gone);
  if ((pushed.old & slab::kSharedBit) != 0) {
    shard::after_remote_free(slab, pushed.old, count);
  } else if (pushed.must_queue && !post(slab)) {
    unqueue(slab);  // the owner left between our push and now
  }
  note_freed();
}

void unqueue(SlabHeader* slab) {
  for (;;) {
    // From here others may queue it again. acq_rel: the next writer of inbox_next comes after our reader.
    uint64_t word = __atomic_and_fetch(&slab->remote, ~slab::kQueued, __ATOMIC_ACQ_REL);
    // While the flag stood nobody else could tell the slab's present owner, or its shard, what came back.
    if ((word & slab::kSharedBit) != 0) return shard::reconsider(slab);
    const uint32_t count = slab::count_of(word);
    if (count == 0 || count < __atomic_load_n(&slab->notify, __ATOMIC_RELAXED)) return;
    const uintptr_t owner = owner_of(slab) & ~kDirect;
    if (owner == kNobody || owner == kShared) return;  // who gives it away sees the count, and acts
    // acq_rel: as in push_remote. A change meanwhile was made by somebody who looks, as the flag is clear.
    if (!__atomic_compare_exchange_n(&slab->remote, &word, word | slab::kQueued, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      return;
    }
    if (post(slab)) return;
  }
}

namespace {

RemoteEntry& entry_for(Heap* heap, const SlabHeader* slab) {
  return heap->remote[(reinterpret_cast<uintptr_t>(slab) / sizeof(SlabHeader)) % kRemoteEntries];
}

// While a block waits in the cache, its link says in whose.
uintptr_t waiting_in(const Heap* heap) {
  return slab::link_to(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(heap) + kWaiting));
}

// Several threads may free one block at the same time: all may have seen it live. One of them gets through:
//   1. Each reads the check, sees that the block is live, and stores its own mark in the link. (mark_waiting)
//   2. When it hands the block over it sees that the check is as it was, and stores there.      (take_check)
//   3. It sees that its mark still stands in the link.                                          (has_mark)
// A fence stands before 2 and before 3. Let A and B get through, and A's mark be the first of the two. A
// still found it in 3, so B stored later, and found in 2 what A had stored in the check: a link of the kind
// kRemote, which stands in no live block. No exchange: the line is another processor's, and many such frees
// wait for theirs at the same time.
//
// Puts the mark there. The check, as it was before the block was last seen to be live.
uint32_t mark_waiting(uintptr_t mark, const SlabHeader* slab, void* block, bool live) {
  if (!slab::kMarksLinks) return slab::set_link(block, mark, slab::kRemote), 0;
  // acquire: pairs with the stores of a free, the link's first. So who sees its check sees that, too.
  const uintptr_t check = __atomic_load_n(&slab::check_word(block), __ATOMIC_ACQUIRE);
  if (__builtin_expect(live && slab::looks_free(block), false)) slab::double_free(slab, block, "free");
  set_relaxed(slab::link_word(block), mark);
  return static_cast<uint32_t>(check);
}

bool take_check(void* block, uint32_t check, const void* next) {
  uintptr_t& word = slab::check_word(block);
  if (slab::kMarksLinks && static_cast<uint32_t>(relaxed(word)) != check) return false;
  set_relaxed(word, slab::link_to(next) ^ slab::kRemote);
  return true;
}

bool has_mark(void* block, uintptr_t mark) {
  return relaxed(slab::link_word(block)) == mark;
}

void* chain_up_tiny(const RemoteEntry& entry) {
  void* chain = nullptr;
  for (uint32_t i = 0; i < entry.count; ++i) {
    slab::link_tiny(entry.slab, entry.blocks[i], chain);
    chain = entry.blocks[i];
  }
  return chain;
}

void* chain_up(uintptr_t mark, const RemoteEntry& entry) {
  const SlabHeader* slab = entry.slab;
  // Else another free of one of the blocks was the slab's last.
  if (__builtin_expect(slab->kind != Kind::slab, false)) bad_bin(entry.blocks[0], slab->size_class);
  if (slab::is_tiny(slab)) return chain_up_tiny(entry);
  void* chain = nullptr;
  os::full_fence();
  for (uint32_t i = 0; i < entry.count; ++i) {
    void* block = entry.blocks[i];
    if (__builtin_expect(!take_check(block, entry.checks[i], chain), false)) bad_bin(block, slab->size_class);
    chain = block;
  }
  os::full_fence();
  for (uint32_t i = entry.count; i-- > 0;) {
    void* block = entry.blocks[i];
    if (__builtin_expect(!has_mark(block, mark), false)) bad_bin(block, slab->size_class);
    set_relaxed(slab::link_word(block), relaxed(slab::check_word(block)) ^ slab::kRemote);
  }
  return chain;
}

void flush(Heap* heap, RemoteEntry& entry) {
  if (entry.count == 0) return;
  void* first = chain_up(waiting_in(heap), entry);
  SlabHeader* slab = entry.slab;
  const uint32_t count = entry.count;
  entry.count = 0;  // first: what is handed over is no longer listed here (heap/diagnose.cc)
  entry.slab = nullptr;
  heap->handed_over += count * slab::row_of(slab).block_size;
  hand_over(slab, first, entry.blocks[0], count);
  if (heap->handed_over < kFreedPerLook) return;
  heap->handed_over = 0;
  look_after_frees();
}

}  // namespace

void release_remote(Heap* heap, SlabHeader* slab, void* p, bool live) {
  RemoteEntry& entry = entry_for(heap, slab);
  if (entry.slab != slab) {
    flush(heap, entry);
    entry.slab = slab;
    const size_t together = kFlushBytes / slab::row_of(slab).block_size;
    entry.limit = static_cast<uint16_t>(together < 1 ? 1 : together < kFlushCount ? together : kFlushCount);
    heap->remote_used = true;
  }
  entry.blocks[entry.count] = p;
  if (!slab::is_tiny(slab)) entry.checks[entry.count] = mark_waiting(waiting_in(heap), slab, p, live);
  if (++entry.count == entry.limit) flush(heap, entry);
}

void claim_block(SlabHeader* slab, void* p) {
  RemoteEntry entry;
  entry.slab = slab;
  entry.count = 1;
  entry.blocks[0] = p;
  // No other thread's, and no block's, so no link of a list.
  const uintptr_t mark = slab::link_to(reinterpret_cast<void*>(os::thread_address()));
  if (slab::is_tiny(slab)) {
    if (!slab::mark_free(slab, p)) slab::double_free(slab, p, "free");
  } else {
    entry.checks[0] = mark_waiting(mark, slab, p, true);
  }
  chain_up(mark, entry);
}

void release_remote_now(SlabHeader* slab, void* p) {
  claim_block(slab, p);
  hand_over(slab, p, p, 1);
}

void flush_remote(Heap* heap) {
  heap->remote_used = false;
  for (RemoteEntry& entry : heap->remote) flush(heap, entry);
}

}  // namespace hummock::heap
