// Frees into slabs of others: gathered per slab, handed over with one compare-and-swap.
#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

constexpr uint32_t kFlushCount = 32;

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

void flush(RemoteEntry& entry) {
  if (entry.count == 0) return;
  hand_over(entry.slab, entry.first, entry.last, entry.count);
  entry = {};
}

// The owner's last free, read while it may write it: it can only be p when p is free already.
__attribute__((no_sanitize("thread"), noipa)) bool was_just_freed(const SlabHeader* slab, const void* p) {
  return slab->free == p;
}

}  // namespace

void release_remote(Heap* heap, SlabHeader* slab, void* p) {
  RemoteEntry& entry = entry_for(heap, slab);
  if (entry.slab != slab) {
    flush(entry);
    entry = {slab, nullptr, p, 0};
    heap->remote_used = true;
  }
  if (entry.first == p || was_just_freed(slab, p)) slab::double_free(p);
  slab::mark(slab, p);
  slab::link_of(p) = entry.first;
  entry.first = p;
  if (++entry.count == kFlushCount) flush(entry);
}

void release_remote_now(SlabHeader* slab, void* p) {
  slab::mark(slab, p);
  hand_over(slab, p, p, 1);
}

void flush_remote(Heap* heap) {
  heap->remote_used = false;
  for (RemoteEntry& entry : heap->remote) flush(entry);
}

}  // namespace hummock::heap
