// Frees into slabs of others: gathered per slab, handed over with one compare-and-swap.
#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/release.h"
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
void* waiting_in(const Heap* heap) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(heap) | kWaiting);
}

// Another thread that freed one of the blocks at the same time has written its own name there.
void* chain_up(const Heap* heap, const RemoteEntry& entry) {
  void* chain = nullptr;
  for (uint32_t i = 0; i < entry.count; ++i) {
    void* block = entry.blocks[i];
    if (!slab::is_tiny(entry.slab)) {
      const bool mine = slab::next_remote(block) == waiting_in(heap);
      if (__builtin_expect(!mine, false)) bad_bin(block, entry.slab->size_class);
    }
    slab::link_remote(entry.slab, block, chain);
    chain = block;
  }
  return chain;
}

void flush(Heap* heap, RemoteEntry& entry) {
  if (entry.count == 0) return;
  void* first = chain_up(heap, entry);
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

void release_remote(Heap* heap, SlabHeader* slab, void* p) {
  if (!slab::is_tiny(slab)) slab::set_next_remote(p, waiting_in(heap));
  RemoteEntry& entry = entry_for(heap, slab);
  if (entry.slab != slab) {
    flush(heap, entry);
    entry.slab = slab;
    const size_t together = kFlushBytes / slab::row_of(slab).block_size;
    entry.limit = static_cast<uint16_t>(together < 1 ? 1 : together < kFlushCount ? together : kFlushCount);
    heap->remote_used = true;
  }
  entry.blocks[entry.count] = p;
  if (++entry.count == entry.limit) flush(heap, entry);
}

void release_remote_now(SlabHeader* slab, void* p) {
  slab::link_remote(slab, p, nullptr);
  hand_over(slab, p, p, 1);
}

void flush_remote(Heap* heap) {
  heap->remote_used = false;
  for (RemoteEntry& entry : heap->remote) flush(heap, entry);
}

}  // namespace hummock::heap
