// free, where the slab is not the caller's own.
#include "heap/release.h"

#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/checked.h"
#include "heap/diagnose.h"
#include "heap/large.h"
#include "heap/refill.h"
#include "heap/served.h"
#include "heap/user.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

bool is_shared(const SlabHeader* slab) {
  return (__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & slab::kSharedBit) != 0;
}

// A thread that frees into a slab it gave away takes it back, and will keep it.
bool reclaim(Heap* heap, SlabHeader* slab) {
  if (relaxed(slab->home) != heap || !heap->attached || !is_shared(slab)) return false;
  if (!shard::reclaim(slab, heap)) return false;
  slab->home_frees = true;
  keep_slab(heap, slab);
  return true;
}

constexpr size_t kCacheLine = 64;

// The block is kept like one of our own: its slab's owner has no use for it yet, and here it is at hand.
void release_in_slab(SlabHeader* slab, void* p) {
  slab::check_block(slab, p, "free", base::refuse);
  Heap* heap = thread_heap;
  if (heap == &empty_heap) heap = attach();
  if (heap == nullptr || heap == &ended_heap) return release_remote_now(slab, p);
  const bool foreign = !reclaim(heap, slab);
  // Blocks that share a cache line stay with one thread: else two would write to one line for ever. And a
  // thread that never asked for such blocks, or not for long, has no use for them.
  if (foreign &&
      (slab::row_of(slab).block_size < kCacheLine || heap->reserve[slab->size_class].allowed == 0)) {
    return release_remote(heap, slab, p);
  }
  if (slab->size_class == slab::kTiny) return release_slow(p, slab, heap);  // direct since it was reclaimed
  release_recent(heap, &heap->bins[slab->size_class], p);
}

}  // namespace

void give_foreign(Heap* heap, SlabHeader* slab, void* p) {
  // In the middle of a list: nothing to go on with.
  if (slab->kind != Kind::slab) bad_pointer("free", p, base::die);
  slab::check_block(slab, p, "free");
  if (!reclaim(heap, slab)) return release_remote(heap, slab, p);
  make_direct(heap, slab);
  release_to_slab(heap, slab, p);
}

namespace {

__attribute__((noinline)) void release_other(void* p) {
  if (p == nullptr) return;
  if (sees_every_call()) {
    if (is_checked()) return checked::release("free", p);
    if (served::owns(p)) return served::release(p);
  }
  SlabHeader* header = pages::find_slab(p);
  if (header == nullptr) bad_pointer("free", p);
  switch (header->kind) {
    case Kind::slab:
      return release_in_slab(header, p);
    case Kind::own_slab:
      return user_release(relaxed(header->home), p);
    case Kind::large:
    case Kind::huge:
      if (p != header->start) bad_pointer("free", p);
      if (header->home != nullptr) return user_release(header->home, p);
      return release_large(header);
    default:
      bad_pointer("free", p);
  }
}

// A large block of no first-class heap; exact, as no other address is the start of one.
bool is_large(const SlabHeader* slot, const void* p) {
  return slot->kind == Kind::large && slot->start == p && slot->home == nullptr;
}

__attribute__((noinline)) void release_to_full(Heap* heap, SlabHeader* slab, void* p) {
  no_longer_full(heap, slab);
  release_to_slab(heap, slab, p);
}

// A free into the slab's own list that made it empty, or the 256th of the class.
__attribute__((noinline)) void after_direct(Heap* heap, SlabHeader* slab) {
  const unsigned size_class = slab->size_class;
  if (slab->live_sum == 0) emptied(heap, slab);
  if (heap->reserve[size_class].direct == 0) lighten(heap, size_class);
}

__attribute__((noinline)) void release_not_direct(void* p, SlabHeader* slot, Heap* heap) {
  if (is_large(slot, p) && relaxed(fast_limit) != 0) return release_span(heap, slot);
  release_other(p);
}

}  // namespace

// All that is rare is left by tail calls, so that the rest needs no stack.
void release_slow(void* p, SlabHeader* slot, Heap* heap) {
  if (owner_of(slot) != reinterpret_cast<uintptr_t>(heap) + kDirect) return release_not_direct(p, slot, heap);
  SlabHeader* slab = slot - slot->back;
  if (__builtin_expect(slab->full, false)) return release_to_full(heap, slab, p);
  slab::put_block(slab, p);
  const uint8_t direct = ++heap->reserve[slab->size_class].direct;
  if (__builtin_expect(slab->live_sum == 0 || direct == 0, false)) after_direct(heap, slab);
}

}  // namespace hummock::heap
