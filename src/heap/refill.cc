#include "heap/refill.h"

#include <limits.h>

#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "heap/inbox.h"
#include "heap/magazine.h"
#include "heap/own_slabs.h"
#include "heap/release.h"
#include "heap/remote.h"
#include "heap/slow_time.h"
#include "heap/tag.h"
#include "os/os.h"
#include "os/probe.h"
#include "os/region_log.h"
#include "shard/shard.h"
#include "slab/gone.h"

namespace hummock::heap {
namespace {

// The smallest blocks always go to their slab's own list.
bool wants_direct(const Heap* heap, const SlabHeader* slab) {
  return slab::is_tiny(slab) || is_direct(heap->bins[slab->size_class]);
}

// The class's rest must be empty.
void own(Heap* heap, SlabHeader* slab) {
  Bin* bin = &heap->bins[slab->size_class];
  if (slab->bin != bin) slab::set_bin(slab, bin, &heap->rest[slab->size_class]);
  set_relaxed(slab->home, heap);
  const bool direct = wants_direct(heap, slab);
  slab::set_owner(slab, reinterpret_cast<uintptr_t>(heap) + (direct ? kDirect : 0),
                  direct ? 0 : heap->thread);
}

// The slab's frees go where the class's frees should go.
bool is_as_wanted(const Heap* heap, const SlabHeader* slab) {
  const uintptr_t mine = reinterpret_cast<uintptr_t>(heap);
  const uintptr_t owner = owner_of(slab);
  return owner == mine || (owner == mine + kDirect && wants_direct(heap, slab));
}

// A slab with nothing left to hand out stops being current. The heap keeps it if its own thread frees such
// blocks (it took a slab of the class back), or if the class frees straight to slabs. Otherwise it goes to
// the shard, so that any thread's free can end it. A slab that the thread purges stays until that has ended.
void retire(Heap* heap, SlabHeader* slab) {
  if (slab->purging) {
    slab->full = true;
    return heap->full.push_back(slab);
  }
  const bool stays = heap->keeps_full.has(slab->size_class) || is_direct(heap->bins[slab->size_class]);
  stays ? keep_slab(heap, slab) : shard::give_away(slab, heap);
}

void remove_partial(Heap* heap, SlabHeader* slab) {
  if (heap->own_round.next == slab) heap->own_round.next = slab->next;
  heap->partial[slab->size_class].remove(slab);
}

SlabHeader* next_slab(Heap* heap, unsigned size_class) {
  if (has_posted(heap)) read_inbox(heap);
  SlabHeader* slab = pop_partial(heap, size_class);
  if (slab != nullptr) return slab;
  slab = shard::adopt(size_class, heap);
  if (slab == nullptr) slab = new_slab(size_class, Kind::slab);
  if (slab != nullptr) own(heap, slab);
  return slab;
}

}  // namespace

void end_slab(Heap* heap, SlabHeader* slab) {
  if (slab->purging) heap->own_purge.forget();
  slab::destroy(slab);
}

void unlist(Heap* heap, SlabHeader* slab) {
  if (!slab->full) return remove_partial(heap, slab);
  heap->full.remove(slab);
  slab->full = false;
}

SlabHeader* pop_partial(Heap* heap, unsigned size_class) {
  SlabHeader* slab = heap->partial[size_class].front();
  if (slab != nullptr) remove_partial(heap, slab);
  return slab;
}

namespace {

void give_back(Heap* heap, SlabHeader* slab) {
  slab::check_none_returned(slab);
  slab::check_empty(slab, {});
  end_slab(heap, slab);
}

void leave(Heap* heap, SlabHeader* slab) {
  if (slab->live == 0) {
    give_back(heap, slab);
  } else {
    shard::give_away(slab, heap);
  }
}

// Of this many refills one flushes what another class has not needed, and the remote cache. A power of two.
constexpr unsigned kShortagesPerSweep = 4;
constexpr uint8_t kLooksAfterTick = 4;

constexpr unsigned kFirstAlone = slab::class_of(kDirectSize + 1);  // pop_direct serves blocks from here on
constexpr unsigned kFirstAboveAPage = slab::class_of(kSmallPage + 1);

// The slab has no free block with memory: only pages that are gone, or were never touched.
bool is_spent(const SlabHeader* slab) {
  return slab->free == slab::end_of(slab) && slab::returned_count(slab) == 0;
}

void note_refill(Heap* heap, unsigned size_class, uint32_t blocks) {
  const size_t size = slab::kTable.row[size_class].block_size;
  HUMMOCK_PROBE2(hummock, refill, size, blocks);
  count_drawn(heap, blocks * size, blocks);
}

// Returns the first of the blocks, and puts the others into the bin.
void* fill_bin(Heap* heap, unsigned size_class, const slab::List& list) {
  Bin* bin = &heap->bins[size_class];
  put_list(bin, list);
  note_refill(heap, size_class, list.count);
  void* block = pop_any(bin, size_class);
  if (block == nullptr) bad_bin(list.first, size_class);
  return block;
}

// What other threads freed is taken one by one, because a walk along its links would wait for each line.
void* take_from_rest(Heap* heap, unsigned size_class, SlabHeader* slab) {
  slab::Rest* rest = &heap->rest[size_class];
  if (const uint32_t blocks = slab::make_ready(slab, rest)) {
    if (void* block = slab::take_one(rest, &heap->bins[size_class])) {
      note_refill(heap, size_class, blocks);
      return block;
    }
  }
  return fill_bin(heap, size_class, slab::take_some(slab, rest));
}

// Of the class's rest, which is not empty.
SlabHeader* slab_of_rest(const Heap* heap, unsigned size_class) {
  void* first = heap->rest[size_class].first;
  SlabHeader* slab = pages::find_slab(first);
  if (slab == nullptr || slab->size_class != size_class) bad_bin(first, size_class);
  return slab;
}

}  // namespace

namespace {

__attribute__((always_inline)) inline void* refill_now(Heap* heap, unsigned size_class) {
  check_bin(heap, size_class);
  if (++heap->shortages % kShortagesPerSweep == 0 && heap->looks == 0) heap->looks = 1;
  const bool due = heap->refills % kCallsPerTick == 0 || pages::is_behind();
  // Not both in one call, because a flush may end slabs, and that makes system calls, too.
  if ((due && tick_pending()) || (heap->looks != 0 && is_asked())) {
    if (tick(pages::kMostCalls)) heap->looks = kLooksAfterTick;
  } else if (heap->looks != 0) {
    sweep(heap, heap->looks, size_class);
    heap->looks = 0;
  }
  heap->holding.add(size_class);
  heap->bins[size_class].asked = true;
  SlabHeader*& current = heap->current[size_class];
  // For blocks of more than a page, free blocks of other slabs come before memory that was never touched.
  if (size_class >= kFirstAboveAPage && current != nullptr && is_spent(current) &&
      !heap->partial[size_class].empty()) {
    SlabHeader* fresh = current;
    current = pop_partial(heap, size_class);
    heap->partial[size_class].push_back(fresh);
  }
  slab::Rest& rest = heap->rest[size_class];
  if (rest.count != 0) return take_from_rest(heap, size_class, slab_of_rest(heap, size_class));
  bool many = false;
  for (;;) {
    if (current != nullptr) {
      if (!is_as_wanted(heap, current)) own(heap, current);
      slab::List list = slab::take_own(current);
      if (list.first == nullptr && (rest.count != 0 || slab::gather(current, &rest)))
        return take_from_rest(heap, size_class, current);
      if (list.first == nullptr) list = slab::take_fresh(current, many);
      if (list.first != nullptr) return fill_bin(heap, size_class, list);
      SlabHeader* spent = current;
      current = nullptr;
      retire(heap, spent);
      many = true;
    }
    current = next_slab(heap, size_class);
    if (current == nullptr) return nullptr;
  }
}

__attribute__((noinline)) void* refill_timed(Heap* heap, unsigned size_class) {
  const uint64_t began = os::now_ns();
  void* block = refill_now(heap, size_class);
  note_time(os::now_ns() - began);
  return block;
}

}  // namespace

// The clock is read at one call in 256.
void* refill(Heap* heap, unsigned size_class) {
  if (__builtin_expect(++heap->refills == 0, false)) return refill_timed(heap, size_class);
  return refill_now(heap, size_class);
}

void* pop_direct(Heap* heap, Bin* bin) {
  const auto size_class = static_cast<unsigned>(bin - heap->bins);
  SlabHeader* slab = heap->current[size_class];
  const bool may = size_class >= kFirstAlone && slab != nullptr && bin->blocks == bin;
  if (!may || (heap->refills + 1) % kCallsPerTick == 0 || sees_every_call()) return nullptr;
  if (owner_of(slab) != reinterpret_cast<uintptr_t>(heap) + kDirect) return nullptr;
  void* block = pop_list(&slab->free);
  if (block == nullptr) return nullptr;
  ++heap->refills;
  ++slab->live;
  bin->asked = true;
  count_drawn(heap, slab::kTable.row[size_class].block_size, 1);
  return block;
}

slab::List take_rest(Heap* heap, unsigned size_class) {
  return slab::take_some(slab_of_rest(heap, size_class), &heap->rest[size_class]);
}

SlabHeader* new_slab(unsigned size_class, Kind kind) {
  SlabHeader* slab = slab::create(size_class, kind);
  return slab != nullptr || !give_up_parked() ? slab : slab::create(size_class, kind);
}

void file_slab(Heap* heap, SlabHeader* slab) {
  if (slab->live == 0) {
    give_back(heap, slab);
  } else {
    heap->partial[slab->size_class].push_front(slab);
  }
}

void keep_slab(Heap* heap, SlabHeader* slab) {
  own(heap, slab);
  slab->full = slab::available(slab) == 0;
  if (slab->full) {
    heap->full.push_back(slab);
  } else {
    heap->partial[slab->size_class].push_front(slab);
  }
}

void no_longer_full(Heap* heap, SlabHeader* slab) {
  unlist(heap, slab);
  heap->partial[slab->size_class].push_front(slab);
}

void make_direct(Heap* heap, SlabHeader* slab) {
  slab::set_owner(slab, reinterpret_cast<uintptr_t>(heap) + kDirect);
  if (slab->full) no_longer_full(heap, slab);
}

void emptied(Heap* heap, SlabHeader* slab) {
  if (slab == heap->current[slab->size_class]) {
    heap->current[slab->size_class] = nullptr;
  } else {
    unlist(heap, slab);
  }
  give_back(heap, slab);
}

namespace {

// In slabs whose frees the heap's own thread may take on the fast path.
void set_freer(Heap* heap, uintptr_t freer) {
  heap->thread = freer;
  for_slabs(heap, [=](SlabHeader* slab) {
    const uintptr_t owner = owner_of(slab);
    if (owner == reinterpret_cast<uintptr_t>(heap)) slab::set_owner(slab, owner, freer);
  });
}

}  // namespace

void leave_fast_path(Heap* heap) {
  set_freer(heap, 0);
}

void return_to_fast_path(Heap* heap) {
  set_freer(heap, os::thread_address());
}

void purge_slabs(Heap* heap) {
  os::Event event;
  const size_t bytes = purge_all_own(heap) + shard::purge_listed(heap, purge_at_once);
  if (bytes != 0) event.log("Purge", nullptr, bytes, 0, "pages inside slabs");
}

namespace {

// Bytes of blocks that nobody uses, with those that others freed.
size_t free_bytes(const SlabHeader* slab) {
  return (slab::count_own(slab) + size_t{slab::returned_count(slab)}) * slab::row_of(slab).block_size;
}

size_t free_bytes(const Heap* heap, unsigned size_class) {
  size_t bytes = heap->rest[size_class].count * size_t{slab::kTable.row[size_class].block_size};
  const SlabHeader* slab = heap->current[size_class];
  if (slab != nullptr) bytes += free_bytes(slab);
  for (slab = heap->partial[size_class].front(); slab != nullptr; slab = slab->next)
    bytes += free_bytes(slab);
  return bytes;
}

void leave_class(Heap* heap, unsigned size_class) {
  empty_bin(heap, size_class);
  SlabHeader* slab = heap->current[size_class];
  heap->current[size_class] = nullptr;
  if (slab != nullptr) leave(heap, slab);
  while ((slab = pop_partial(heap, size_class)) != nullptr) leave(heap, slab);
}

}  // namespace

void leave_free_slabs(Heap* heap, size_t most) {
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    const size_t bytes = free_bytes(heap, c);
    if (bytes > most) {
      leave_class(heap, c);
    } else {
      most -= bytes;
    }
  }
}

bool leave_some_slabs(Heap* heap, unsigned most) {
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    SlabHeader* slab = heap->current[c];
    heap->current[c] = nullptr;
    if (slab == nullptr) slab = pop_partial(heap, c);
    for (; slab != nullptr; slab = pop_partial(heap, c)) {
      leave(heap, slab);
      if (--most == 0) return true;
    }
  }
  while (SlabHeader* slab = heap->full.pop_front()) {
    slab->full = false;
    leave(heap, slab);
    if (--most == 0) return true;
  }
  return false;
}

void leave_slabs(Heap* heap) {
  end_own_purge(heap);
  for (unsigned c = 1; c < slab::kClasses; ++c) empty_bin(heap, c);
  leave_some_slabs(heap, UINT_MAX);
  end_own_round(heap);
}

}  // namespace hummock::heap
