#include "shard/shard.h"

#include "base/list.h"
#include "os/lock.h"
#include "slab/gone.h"

namespace hummock::shard {
namespace {

constexpr unsigned kShards = 8;

using SlabList = base::List<SlabHeader, &SlabHeader::next, &SlabHeader::prev>;

struct alignas(64) Shard {
  os::Lock<os::Rank::shard> lock;
  SlabList lists[slab::kClasses];  // guarded by lock
};

Shard shards[kShards];
uint8_t nonempty[slab::kClasses];  // bit i: shards[i] lists a slab of the class. Written under the
                                   // shard's lock, atomic; read without: a hint.

unsigned shard_of(const SlabHeader* slab) {
  return static_cast<unsigned>((reinterpret_cast<uintptr_t>(slab) / sizeof(SlabHeader)) % kShards);
}

bool is_shared(const SlabHeader* slab) {
  return (__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & slab::kSharedBit) != 0;
}

// The next three need the shard's lock.
void enlist(Shard& shard, SlabHeader* slab) {
  slab->listed = true;
  shard.lists[slab->size_class].push_back(slab);
  __atomic_fetch_or(&nonempty[slab->size_class], static_cast<uint8_t>(1u << (&shard - shards)),
                    __ATOMIC_RELAXED);
}

void delist(Shard& shard, SlabHeader* slab) {
  if (!slab->listed) return;
  slab->listed = false;
  SlabList& list = shard.lists[slab->size_class];
  list.remove(slab);
  if (list.empty()) {
    __atomic_fetch_and(&nonempty[slab->size_class], static_cast<uint8_t>(~(1u << (&shard - shards))),
                       __ATOMIC_RELAXED);
  }
}

// From shared to owned. The new owner is written before the shared bit is cleared (release), so a thread
// whose free finds the bit clear, and notify reached, finds the owner to notify. What others freed stays in
// the word.
void take_over(Shard& shard, SlabHeader* slab, heap::Heap* heap) {
  delist(shard, slab);
  set_relaxed(slab->home, heap);
  set_relaxed(slab->notify, slab::worth_while(slab));
  slab::set_owner(slab, reinterpret_cast<uintptr_t>(heap) + kDirect);  // until the heap takes blocks
  // acquire: shows what earlier owners wrote.
  __atomic_fetch_and(&slab->remote, ~slab::kSharedBit, __ATOMIC_ACQ_REL);
}

// If every live block has come back, nobody can free here any more, and the slab is the caller's. Otherwise
// false: blocks that were counted may have been taken back (slab/gone.h); that thread comes here afterwards.
bool finish(Shard& shard, SlabHeader* slab) {
  slab::Returned returned;
  if (!slab::take_remote(slab, slab::kQueued, slab->shared_live, &returned)) return false;
  delist(shard, slab);
  slab::check_empty(slab, returned);
  return true;
}

}  // namespace

void settle(SlabHeader* slab) {
  Shard& shard = shards[shard_of(slab)];
  shard.lock.lock();
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  if ((word & slab::kSharedBit) == 0) {  // somebody else adopted or finished it
    shard.lock.unlock();
    return;
  }
  if (finish(shard, slab)) {
    shard.lock.unlock();
    slab::destroy(slab);
    return;
  }
  if (!slab->listed && slab::count_of(word) >= slab->notify) enlist(shard, slab);
  shard.lock.unlock();
}

void give_away(SlabHeader* slab, heap::Heap* home) {
  const uint32_t want = slab::worth_while(slab);
  const uint32_t have = slab::available(slab);
  set_relaxed(slab->home, home);
  set_relaxed(slab->shared_live, static_cast<uint32_t>(slab->live));
  slab->listed = slab->full = false;
  __atomic_store_n(&slab->notify, have >= want ? 0 : want - have, __ATOMIC_RELAXED);
  slab::set_owner(slab, kShared);
  // release: owner, notify, shared_live and the free list before the bit. From here others may adopt or
  // finish the slab at any time; but we must act on a count that was reached before.
  const uint32_t live = slab->shared_live;
  const uint32_t notify = slab->notify;
  const uint64_t old = __atomic_fetch_or(&slab->remote, slab::kSharedBit, __ATOMIC_ACQ_REL);
  if (slab::count_of(old) >= notify || slab::count_of(old) >= live) settle(slab);
}

SlabHeader* adopt(unsigned size_class, heap::Heap* heap) {
  uint8_t hints = __atomic_load_n(&nonempty[size_class], __ATOMIC_RELAXED);
  while (hints != 0) {
    Shard& shard = shards[__builtin_ctz(hints)];
    hints = static_cast<uint8_t>(hints & (hints - 1));
    os::LockGuard guard(shard.lock);
    SlabHeader* slab = shard.lists[size_class].front();
    if (slab == nullptr) continue;
    take_over(shard, slab, heap);
    return slab;
  }
  return nullptr;
}

bool reclaim(SlabHeader* slab, heap::Heap* heap) {
  Shard& shard = shards[shard_of(slab)];
  os::LockGuard guard(shard.lock);
  if (!is_shared(slab)) return false;
  take_over(shard, slab, heap);
  return true;
}

namespace {

size_t count_listed(Shard& shard, unsigned size_class) {
  os::LockGuard guard(shard.lock);
  size_t count = 0;
  for (const SlabHeader* slab = shard.lists[size_class].front(); slab != nullptr; slab = slab->next) ++count;
  return count;
}

// Takes the first slab of the list for the heap.
SlabHeader* take_first(Shard& shard, unsigned size_class, heap::Heap* heap, heap::Heap** home) {
  os::LockGuard guard(shard.lock);
  SlabHeader* slab = shard.lists[size_class].front();
  if (slab == nullptr) return nullptr;
  *home = relaxed(slab->home);
  take_over(shard, slab, heap);
  return slab;
}

}  // namespace

size_t purge_listed(heap::Heap* heap, size_t (*purge)(SlabHeader*)) {
  size_t bytes = 0;
  heap::Heap* home;
  for (Shard& shard : shards) {
    for (unsigned c = 1; c < slab::kTiny; ++c) {
      for (size_t left = count_listed(shard, c); left != 0; --left) {
        SlabHeader* slab = take_first(shard, c, heap, &home);
        if (slab == nullptr) break;
        bytes += purge(slab);
        if (slab->live == 0) {
          slab::destroy(slab);
        } else {
          give_away(slab, home);  // to the end of the list
        }
      }
    }
  }
  return bytes;
}

void at_fork(os::ForkStep step) {
  for (Shard& shard : shards) shard.lock.at_fork(step);
}

}  // namespace hummock::shard
