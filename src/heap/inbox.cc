#include "heap/inbox.h"

#include "heap/heap_pool.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "shard/shard.h"

namespace hummock::heap {

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
  if (!relaxed(heap->attached)) set_relaxed(parked_heap_waits, true);
  return true;
}

void unqueue(SlabHeader* slab) {
  for (;;) {
    // From here others may queue it again. acq_rel: the next writer of inbox_next comes after our reader.
    uint64_t word = __atomic_and_fetch(&slab->remote, ~slab::kQueued, __ATOMIC_ACQ_REL);
    // While the flag was set, nobody else could notify the slab's present owner, or its shard.
    if ((word & slab::kSharedBit) != 0) return shard::settle(slab);
    const uint32_t count = slab::count_of(word);
    if (count == 0 || count < __atomic_load_n(&slab->notify, __ATOMIC_RELAXED)) return;
    const uintptr_t owner = owner_of(slab) & ~kDirect;
    if (owner == kNobody || owner == kShared)
      return;  // the thread that gives it away sees the count, and acts
    // acq_rel: as in push_remote. If the word has changed, whoever changed it looks, because the flag is
    // clear.
    if (!__atomic_compare_exchange_n(&slab->remote, &word, word | slab::kQueued, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      return;
    }
    if (post(slab)) return;
  }
}

namespace {

// One call looks at so many slabs, or drains so many blocks.
constexpr unsigned kSlabsPerRead = 12;
constexpr unsigned kBlocksPerRead = slab::kMostDrained;

// Ends a slab, which is in no list, if all that is in use has come back. Else drains it and files it, so that
// the thread's own free of the last block finds it empty. A long list stays, for a refill. How many it
// drained.
uint32_t end_or_file(Heap* heap, SlabHeader* slab) {
  slab::Returned returned;
  if (slab::take_remote(slab, slab::kQueued, slab->live, &returned)) {
    slab::check_empty(slab, returned);
    end_slab(heap, slab);
    return 0;
  }
  const uint32_t count = slab::returned_count(slab) <= slab::kMostDrained ? slab::drain(slab) : 0;
  slab::renew_notify(slab);
  slab->full = slab::available(slab) == 0 && slab::returned_count(slab) == 0;
  slab->full ? heap->full.push_back(slab) : file_slab(heap, slab);
  return count;
}

// A slab that others posted. Returns how many blocks it drained; 0 if all blocks in use had come back.
uint32_t look_at_posted(Heap* heap, SlabHeader* slab) {
  const bool mine = (owner_of(slab) & ~kDirect) == reinterpret_cast<uintptr_t>(heap);
  // The flag may have outlived its slab, and the slot may be inside another one now.
  if (!mine || kind_of(slab) == Kind::interior) return unqueue(slab), 0;
  // From here others may queue it again. acq_rel: the next writer of inbox_next comes after our read.
  __atomic_fetch_and(&slab->remote, ~slab::kQueued, __ATOMIC_ACQ_REL);
  if (slab == heap->current[slab->size_class]) return 0;
  heap->keeps_full.remove(slab->size_class);
  unlist(heap, slab);
  return end_or_file(heap, slab);
}

}  // namespace

bool read_inbox(Heap* heap) {
  // acquire: pairs with the release in post, so that inbox_next is seen.
  if (heap->posted == nullptr) heap->posted = __atomic_exchange_n(&heap->inbox, nullptr, __ATOMIC_ACQUIRE);
  uint32_t blocks = 0;
  for (unsigned left = kSlabsPerRead; left != 0 && blocks < kBlocksPerRead; --left) {
    SlabHeader* slab = heap->posted;
    if (slab == nullptr) break;
    heap->posted = slab->inbox_next;
    blocks += look_at_posted(heap, slab);
  }
  return has_posted(heap);
}

namespace {

void unqueue_all(SlabHeader* slab) {
  while (slab != nullptr && slab != kSealed) {
    SlabHeader* next = slab->inbox_next;
    unqueue(slab);
    slab = next;
  }
}

}  // namespace

void seal_inbox(Heap* heap) {
  unqueue_all(heap->posted);
  heap->posted = nullptr;
  unqueue_all(__atomic_exchange_n(&heap->inbox, kSealed, __ATOMIC_ACQ_REL));
}

void settle_slabs(Heap* heap) {
  SlabList all;
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    if (heap->current[c] != nullptr) all.push_back(heap->current[c]);
    heap->current[c] = nullptr;
    while (SlabHeader* slab = pop_partial(heap, c)) all.push_back(slab);
  }
  while (SlabHeader* slab = heap->full.pop_front()) {
    slab->full = false;
    all.push_back(slab);
  }
  while (SlabHeader* slab = all.pop_front()) end_or_file(heap, slab);
}

}  // namespace hummock::heap
