#include "heap/heap_pool.h"

#include "base/options.h"
#include "heap/allowance.h"
#include "heap/idle.h"
#include "heap/inbox.h"
#include "heap/magazine.h"
#include "heap/own_slabs.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "os/lock.h"
#include "os/os.h"
#include "pages/metadata.h"
#include "pages/span_cache.h"

namespace hummock::heap {

uint32_t parked_count;
bool parked_heap_waits;

namespace {

constexpr unsigned kMostParked = 4;
// What a parked heap may have. A thread that ends with more free memory in its slabs gives some away.
constexpr unsigned kMostSlabs = 128;
constexpr size_t kMostHeld = 1024 << 10;  // bytes for which its magazines have room
constexpr size_t kMostFree = 512 << 10;   // bytes free in its slabs
// After so many looks at its inbox, no thread will want it.
constexpr uint32_t kMostServed = 8;
constexpr unsigned kSlabsPerStep = 16;  // given away in one tick

struct Parked {
  Heap* heap;
  uint64_t since;   // ms
  uint32_t served;  // how often others looked at its inbox
  bool borrowed;
};

os::Lock<os::Rank::heap_pool> pool_lock;
Heap* records;       // all there ever were. Atomic: pushed with release
uint8_t next_cache;  // of spans; atomic, relaxed
// Guarded by pool_lock, as are changes of parked_count.
Heap* pool;                  // records without anything
Parked parked[kMostParked];  // the last came last

Heap* pooled_record() {
  os::LockGuard guard(pool_lock);
  Heap* heap = pool;
  if (heap == nullptr) return nullptr;
  pool = heap->next;
  heap->next = nullptr;
  return heap;
}

Heap* new_record() {
  Heap* heap = static_cast<Heap*>(pages::new_heap_record(sizeof(Heap)));
  if (heap == nullptr) return nullptr;
  // The record's for ever: what a thread leaves there serves the next one that has the record.
  heap->near_cache = __atomic_fetch_add(&next_cache, 1, __ATOMIC_RELAXED) % pages::kNearCaches;
  heap->next_record = __atomic_load_n(&records, __ATOMIC_RELAXED);
  // release: pairs with the acquire of all_heaps.
  while (!__atomic_compare_exchange_n(&records, &heap->next_record, heap, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return heap;
}

// pool_lock is held.
void remove(unsigned i) {
  set_relaxed(parked_count, parked_count - 1);
  for (; i < parked_count; ++i) parked[i] = parked[i + 1];
}

// The first one that is not borrowed and that `wanted` accepts is borrowed now. Null: none.
template <class Wanted>
Heap* borrow(Wanted wanted) {
  os::LockGuard guard(pool_lock);
  for (unsigned i = 0; i < parked_count; ++i) {
    if (parked[i].borrowed || !wanted(parked[i])) continue;
    parked[i].borrowed = true;
    return parked[i].heap;
  }
  return nullptr;
}

// Ends a loan: the heap is parked again, or no longer.
void end_loan(const Heap* heap, bool stays) {
  os::LockGuard guard(pool_lock);
  for (unsigned i = 0; i < parked_count; ++i) {
    if (parked[i].heap != heap) continue;
    parked[i].borrowed = false;
    if (!stays) remove(i);
    return;
  }
}

// The last one, because its memory is most likely in the processor's caches.
Heap* unpark() {
  if (!any_parked()) return nullptr;
  os::LockGuard guard(pool_lock);
  for (unsigned i = parked_count; i-- != 0;) {
    if (parked[i].borrowed) continue;
    Heap* heap = parked[i].heap;
    remove(i);
    return heap;
  }
  return nullptr;
}

unsigned count_slabs(const Heap* heap) {
  unsigned count = 0;
  for_slabs(heap, [&](const SlabHeader*) { ++count; });
  return count;
}

// What is left to do when all slabs and blocks have gone.
void close(Heap* heap) {
  give_up_earned(heap);
  seal_inbox(heap);
  settle_freed(heap);
}

void keep_record(Heap* heap) {
  os::LockGuard guard(pool_lock);
  heap->next = pool;
  pool = heap;
}

// A step to give up a borrowed heap. The loan ends.
void go_on_giving_up(Heap* heap) {
  const bool more = flush_next(heap) || flush_some_remote(heap) || leave_some_slabs(heap, kSlabsPerStep);
  end_loan(heap, more);
  if (more) return;
  close(heap);
  keep_record(heap);
}

}  // namespace

Heap* take_heap() {
  if (Heap* heap = unpark()) {
    return_to_fast_path(heap);
    return heap;
  }
  Heap* heap = pooled_record();
  if (heap == nullptr) heap = new_record();
  if (heap == nullptr) return nullptr;
  // relaxed: nobody can know this heap as an owner before it owns a slab.
  __atomic_store_n(&heap->inbox, nullptr, __ATOMIC_RELAXED);
  open_bins(heap);
  heap->thread = os::thread_address();
  return heap;
}

bool park(Heap* heap) {
  if (options::values.decay_ms == 0 || relaxed(parked_count) == kMostParked || heap->held > kMostHeld)
    return false;
  const unsigned slabs = count_slabs(heap);
  if (slabs == 0 || slabs > kMostSlabs) return false;
  end_own_purge(heap);
  end_own_round(heap);
  leave_free_slabs(heap, kMostFree);
  settle_slabs(heap);
  flush_remote(heap);
  settle_freed(heap);
  give_back_more(heap);  // threads that end soon look nowhere else
  settle(heap);
  leave_fast_path(heap);
  const uint64_t now = os::now_ms();
  os::LockGuard guard(pool_lock);
  if (parked_count == kMostParked) return false;
  parked[parked_count] = {heap, now, 0, false};
  set_relaxed(parked_count, parked_count + 1);
  note_freed();  // so that ticks come
  return true;
}

void give_up(Heap* heap) {
  while (read_inbox(heap)) {
  }
  leave_slabs(heap);
  flush_remote(heap);
  close(heap);
  give_back_more(heap);
  keep_record(heap);
}

void serve_parked() {
  set_relaxed(parked_heap_waits, false);
  bool wanted = true;
  Heap* heap = borrow([&](Parked& its) {
    if (!has_posted(its.heap)) return false;
    wanted = ++its.served <= kMostServed;
    return true;
  });
  if (heap == nullptr) return;
  if (read_inbox(heap)) set_relaxed(parked_heap_waits, true);
  wanted ? end_loan(heap, true) : go_on_giving_up(heap);
}

void tick_parked(uint64_t now) {
  const auto decay = static_cast<uint64_t>(options::values.decay_ms);
  Heap* heap = borrow([=](const Parked& its) { return now >= its.since + decay; });
  if (heap != nullptr) go_on_giving_up(heap);
}

bool give_up_parked() {
  bool any = false;
  while (Heap* heap = unpark()) {
    give_up(heap);
    any = true;
  }
  return any;
}

void count_parked(uint32_t* per_class) {
  os::LockGuard guard(pool_lock);
  for (unsigned i = 0; i < parked_count; ++i) {
    if (parked[i].borrowed) continue;
    for (unsigned c = 1; c < slab::kClasses; ++c)
      per_class[c] += static_cast<uint32_t>(count_at_hand(parked[i].heap, c));
  }
}

bool pool_is_locked() {
  return pool_lock.is_held();
}

void pool_at_fork(os::ForkStep step) {
  if (step == os::ForkStep::in_child) {
    for (unsigned i = parked_count; i-- != 0;) {
      if (parked[i].borrowed) remove(i);
    }
  }
  pool_lock.at_fork(step);
}

size_t earned_by_parked() {
  size_t sum = 0;
  for (unsigned i = 0; i < parked_count; ++i) {
    if (!parked[i].borrowed) sum += parked[i].heap->earned;
  }
  return sum;
}

const Heap* all_heaps() {
  return __atomic_load_n(&records, __ATOMIC_ACQUIRE);
}

}  // namespace hummock::heap
