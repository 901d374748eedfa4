#include "heap/user.h"

#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/diagnose.h"
#include "heap/idle.h"
#include "heap/large.h"
#include "heap/limit_notice.h"
#include "heap/modes.h"
#include "heap/refill.h"

namespace hummock::heap {
namespace {

SlabHeader* add_slab(UserHeap* heap, unsigned size_class) {
  if (tick_pending()) tick();
  SlabHeader* slab = new_slab(size_class, Kind::own_slab);
  if (slab == nullptr) return nullptr;
  slab::Rest none = {};
  slab::set_bin(slab, &user_bin, &none);
  set_relaxed(slab->user, heap);
  heap->open[size_class].push_front(slab);
  return slab;
}

// Blocks never handed out become the slab's list. False: there are none.
bool carve_more(SlabHeader* slab) {
  // Others free here with the lock held, so nothing comes back any other way.
  slab::check_none_returned(slab);
  const slab::List list = slab::take_fresh(slab, slab->carved != 0);
  if (list.first == nullptr) return false;
  slab->free = list.first;
  slab->live = static_cast<uint16_t>(slab->live - list.count);
  return true;
}

bool has_freed(const SlabHeader* slab) {
  return slab->free != slab::end_of(slab);
}

// The slab to take a block from next. What was freed comes before memory never touched.
SlabHeader* first_slab(SlabList& open) {
  SlabHeader* slab = open.front();
  if (slab == nullptr || has_freed(slab) || slab->next == nullptr || !has_freed(slab->next)) return slab;
  open.remove(slab);
  open.push_back(slab);
  return open.front();
}

void* take_small(UserHeap* heap, unsigned size_class) {
  SlabList& open = heap->open[size_class];
  for (;;) {
    SlabHeader* slab = first_slab(open);
    if (slab == nullptr) slab = add_slab(heap, size_class);
    if (slab == nullptr) return nullptr;
    if (has_freed(slab) || carve_more(slab)) {
      void* block = pop_list(&slab->free);
      if (__builtin_expect(block == nullptr, false)) bad_bin(slab->free, size_class);
      __builtin_prefetch(slab->free, 1);  // the next call reads the link there
      ++slab->live;
      return block;
    }
    slab->full = true;
    open.remove(slab);
    heap->full.push_front(slab);
  }
}

void* take_locked(UserHeap* heap, size_t align, size_t size, bool* zeroed) {
  const size_t small = slab::aligned_size(align, size);
  if (small != 0) return take_small(heap, slab::class_of(small));
  return allocate_large(heap, size, align < kSlotSize ? kSlotSize : align, zeroed);
}

// A mark of 0 is not written. Null: no memory, which the caller tells.
void* take_with(UserHeap* heap, size_t align, size_t size, uintptr_t mark, bool* zeroed) {
  *zeroed = false;
  if (size > size_t{PTRDIFF_MAX} - align) return nullptr;
  void* block;
  {
    os::LockGuard guard(heap->lock);
    block = take_locked(heap, align, size, zeroed);
    if (block != nullptr && mark != 0) slab::link_word(block) = mark;
  }
  if (block != nullptr) tell_if_limited();
  return block;
}

// A class's only slab stays where little of it was ever used: else a block that comes and goes would make one
// each time.
constexpr size_t kMostSpare = 16 << 10;

bool is_spare(const SlabList& open, const SlabHeader* slab) {
  const size_t used = size_t{slab->carved} * slab::row_of(slab).block_size;
  return used <= kMostSpare && open.front() == slab && slab->next == nullptr;
}

void give_small(UserHeap* heap, SlabHeader* slab, void* p) {
  SlabList& open = heap->open[slab->size_class];
  if (slab->full) {
    slab->full = false;
    heap->full.remove(slab);
    open.push_front(slab);
  }
  slab::put_block(slab, p);
  if (slab->live != 0 || (!heap->closed && is_spare(open, slab))) return;
  open.remove(slab);
  slab::destroy(slab);
  if (tick_pending()) tick(kCallsAfterFree);
}

void destroy_all(SlabList& slabs) {
  while (SlabHeader* slab = slabs.pop_front()) slab::destroy(slab);
}

// ---- A heap that ends in checked mode; the caller has its lock --------------------------------------

// Of several threads that free in it, one finds it empty.
bool is_empty(const UserHeap* heap) {
  for (const SlabList& slabs : heap->open) {
    if (slabs.front() != nullptr) return false;
  }
  return heap->full.front() == nullptr && heap->large.front() == nullptr;
}

void destroy_spare(SlabList& slabs) {
  for (SlabHeader *slab = slabs.front(), *next; slab != nullptr; slab = next) {
    next = slab->next;
    if (slab->live != 0) continue;
    slabs.remove(slab);
    slab::destroy(slab);
  }
}

// What was touched of the slabs beside their live blocks, and a page each for their header.
size_t sparse_bytes(const SlabList& slabs) {
  size_t sum = 0;
  for (const SlabHeader* slab = slabs.front(); slab != nullptr; slab = slab->next) {
    sum += (size_t{slab->carved} - slab->live) * slab::row_of(slab).block_size + os::page_size();
  }
  return sum;
}

void count_list(const SlabHeader* slab, hummock_heap_stats_t* out) {
  for (; slab != nullptr; slab = slab->next) {
    out->live_blocks += slab->live;
    out->live_bytes += size_t{slab->live} * slab::row_of(slab).block_size;
    out->mapped_bytes += slab->bytes;
    out->slabs += 1;
  }
}

void* take(UserHeap* heap, size_t align, size_t size, bool zero) {
  return sees_every_call() ? modes::allocate_in(heap, align, size, zero) : user_take(heap, align, size, zero);
}

}  // namespace

constinit Bin user_bin = {};

UserHeap* user_create() {
  initialise();
  UserHeap* heap = new_user_heap();
  return heap != nullptr ? heap : static_cast<UserHeap*>(no_memory());
}

void* user_take(UserHeap* heap, size_t align, size_t size, bool zero) {
  bool zeroed;
  void* block = take_with(heap, align, size, 0, &zeroed);
  if (block == nullptr) return no_memory();
  if (!zero || zeroed) return block;
  const Block found = find_block("calloc", block);
  if (found.is_large()) {
    clear_large(found.header);
  } else {
    memset(block, 0, found.room);
  }
  return block;
}

void* user_allocate(UserHeap* heap, size_t size) {
  return take(heap, 0, size, false);
}

void* user_allocate_zeroed(UserHeap* heap, size_t size) {
  return take(heap, 0, size, true);
}

void* user_allocate_aligned(UserHeap* heap, size_t align, size_t size) {
  return take(heap, align, size, false);
}

void* user_reallocate(UserHeap* heap, void* p, size_t size) {
  if (is_checked()) return modes::checked::reallocate(heap, p, size, false);
  const Block block = find_block("hummock_heap_realloc", p);
  if (block.heap != heap) other_heap("hummock_heap_realloc", block.header, p);
  return reallocate(p, size);
}

void user_release(UserHeap* heap, void* p) {
  sees_every_call() ? modes::release_in(heap, p) : user_give(heap, p, "hummock_heap_free");
}

void user_give(UserHeap* heap, void* p, const char* call) {
  const Block block = find_block(call, p);
  if (block.heap != heap) other_heap(call, block.header, p);
  if (heap->samples && modes::sampling::release(block, p)) return;
  os::LockGuard guard(heap->lock);
  // Once more, as another thread may have freed it meanwhile. With the lock held no handler is called.
  const bool same = block.is_large() || kind_of(block.header) == Kind::own_slab;
  if (!same || relaxed(block.header->user) != heap)
    base::die(base::Line() << call << "(" << p << "): double free: another thread freed the block meanwhile");
  if (block.is_large()) return release_large(block.header, claim_large(call, block.header));
  check_live(call, block.header, p, base::die);
  give_small(heap, block.header, p);
}

void* user_take_marked(UserHeap* heap, size_t size, uintptr_t mark, bool* zeroed) {
  return take_with(heap, 0, size, mark, zeroed);
}

void user_take_back(UserHeap* heap, const OwnBlock* blocks, unsigned count) {
  bool ends;
  {
    os::LockGuard guard(heap->lock);
    for (unsigned i = 0; i < count; ++i) {
      SlabHeader* header = blocks[i].header;
      if (kind_of(header) == Kind::own_slab) {
        give_small(heap, header, blocks[i].start);
      } else {
        release_large(header, claim_large("free", header));
      }
    }
    ends = heap->closed && is_empty(heap);
  }
  if (ends) delete_user_heap(heap);
}

size_t user_end(UserHeap* heap) {
  size_t kept;
  {
    os::LockGuard guard(heap->lock);
    heap->closed = true;
    kept = sizeof *heap + sparse_bytes(heap->full);
    for (SlabList& slabs : heap->open) {
      destroy_spare(slabs);
      kept += sparse_bytes(slabs);
    }
    if (!is_empty(heap)) return kept;
  }
  delete_user_heap(heap);
  return 0;
}

void user_destroy(UserHeap* heap) {
  if (is_checked()) return modes::checked::destroy(heap);
  if (!end_use(heap)) no_such_heap("hummock_heap_destroy", heap);
  {
    os::LockGuard guard(heap->lock);
    for (SlabList& slabs : heap->open) destroy_all(slabs);
    destroy_all(heap->full);
    while (SlabHeader* header = heap->large.front()) {
      release_large(header, claim_large("hummock_heap_destroy", header));
    }
  }
  delete_user_heap(heap);
}

void user_name(UserHeap* heap, const char* name) {
  os::LockGuard guard(heap->lock);
  base::copy_printable(name != nullptr ? name : "", heap->name, sizeof heap->name);
}

void user_stats(UserHeap* heap, hummock_heap_stats_t* out) {
  os::LockGuard guard(heap->lock);
  for (const SlabList& slabs : heap->open) count_list(slabs.front(), out);
  count_list(heap->full.front(), out);
  for (const SlabHeader* header = heap->large.front(); header != nullptr; header = header->next) {
    out->live_blocks += 1;
    out->live_bytes += header->bytes;
    out->mapped_bytes += header->bytes;
    out->slabs += 1;
  }
}

}  // namespace hummock::heap
