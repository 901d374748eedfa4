#include "heap/user.h"

#include <string.h>

#include "base/text.h"
#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/checked.h"
#include "heap/diagnose.h"
#include "heap/hooks.h"
#include "heap/large.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "heap/sampling.h"

namespace hummock::heap {
namespace {

void* take_locked(Heap* heap, size_t align, size_t size, bool* zeroed) {
  const unsigned size_class = aligned_class(align < slab::kStep ? slab::kStep : align, size);
  if (size_class == 0) return allocate_large(heap, size, align < kSlotSize ? kSlotSize : align, zeroed);
  *zeroed = false;
  void* block = pop(&heap->bins[size_class]);
  return block != nullptr ? block : refill(heap, size_class);
}

void count_slab(const SlabHeader* slab, hummock_heap_stats_t* out) {
  out->live_blocks += slab->live;
  out->live_bytes += slab->live * slab::row_of(slab).block_size;
  out->mapped_bytes += slab->bytes;
  out->slabs += 1;
}

void count_list(const SlabHeader* slab, hummock_heap_stats_t* out) {
  for (; slab != nullptr; slab = slab->next) count_slab(slab, out);
}

const hummock_hooks_t* wanted_calls() {
  return sees_every_call() ? hooks::wanted_calls() : nullptr;
}

void* told(void* block, size_t size) {
  const hummock_hooks_t* to = wanted_calls();
  return to != nullptr ? hooks::tell_allocated(to, block, size) : block;
}

}  // namespace

Heap* user_create() {
  initialise();
  Heap* heap = new_user_heap();
  return heap != nullptr ? heap : static_cast<Heap*>(no_memory());
}

void* user_take(Heap* heap, size_t align, size_t size, bool zero) {
  if (size > size_t{PTRDIFF_MAX} - align) return no_memory();
  bool zeroed = false;
  void* block;
  {
    os::LockGuard guard(heap->lock);
    block = take_locked(heap, align, size, &zeroed);
  }
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

void* user_allocate(Heap* heap, size_t size) {
  if (is_checked()) return checked::allocate(heap, 0, size, false);
  return told(user_take(heap, 0, size, false), size);
}

void* user_allocate_zeroed(Heap* heap, size_t size) {
  if (is_checked()) return checked::allocate(heap, 0, size, true);
  return told(user_take(heap, 0, size, true), size);
}

void* user_allocate_aligned(Heap* heap, size_t align, size_t size) {
  if (is_checked()) return checked::allocate(heap, align, size, false);
  return told(user_take(heap, align, size, false), size);
}

void* user_reallocate(Heap* heap, void* p, size_t size) {
  if (is_checked()) return checked::reallocate(heap, p, size, false);
  if (find_block("hummock_heap_realloc", p).heap != heap) bad_pointer("hummock_heap_realloc", p);
  return reallocate(p, size);
}

void user_release(Heap* heap, void* p) {
  if (is_checked()) return checked::release("hummock_heap_free", p);
  if (const hummock_hooks_t* to = wanted_calls()) hooks::tell_released(to, p);
  user_give(heap, p);
}

void user_give(Heap* heap, void* p) {
  const Block block = find_block("hummock_heap_free", p);
  if (block.heap != heap) bad_pointer("hummock_heap_free", p);
  if (heap->samples && sampling::release(block, p)) return;
  os::LockGuard guard(heap->lock);
  if (block.is_large()) {
    release_large(block.header, claim_large("hummock_heap_free", block.header));
  } else {
    // Once more, as another thread may have freed it meanwhile. With the lock held no handler is called.
    check_live("hummock_heap_free", block.header, p, base::die);
    if (block.header->full) no_longer_full(heap, block.header);
    release_to_slab(heap, block.header, p);
  }
}

void user_destroy(Heap* heap) {
  if (is_checked() && !checked::forget(heap)) return;
  {
    os::LockGuard guard(heap->lock);
    drop_slabs(heap);
    while (SlabHeader* header = heap->large.front()) {
      release_large(header, claim_large("hummock_heap_destroy", header));
    }
  }
  delete_user_heap(heap);
}

void user_name(Heap* heap, const char* name) {
  os::LockGuard guard(heap->lock);
  base::copy_printable(name != nullptr ? name : "", heap->name, sizeof heap->name);
}

void user_stats(Heap* heap, hummock_heap_stats_t* out) {
  os::LockGuard guard(heap->lock);
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    if (heap->current[c] != nullptr) count_slab(heap->current[c], out);
    count_list(heap->partial[c].front(), out);
    const size_t at_hand = count_at_hand(heap, c);  // counts as in use in the slabs
    out->live_blocks -= at_hand;
    out->live_bytes -= at_hand * slab::kTable.row[c].block_size;
  }
  count_list(heap->full.front(), out);
  for (const SlabHeader* header = heap->large.front(); header != nullptr; header = header->next) {
    out->live_blocks += 1;
    out->live_bytes += header->bytes;
    out->mapped_bytes += header->bytes;
    out->slabs += 1;
  }
}

}  // namespace hummock::heap
