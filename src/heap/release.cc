// free, where the slab is not the caller's own.
#include "heap/release.h"

#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/diagnose.h"
#include "heap/large.h"
#include "heap/magazine.h"
#include "heap/modes.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "heap/user.h"
#include "os/os.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

bool is_shared(const SlabHeader* slab) {
  return (__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & slab::kSharedBit) != 0;
}

// A thread that frees into a slab it gave away takes it back, and will keep it. Not where others have freed
// so much that one call cannot drain it: there the last free ends the slab.
bool reclaim(Heap* heap, SlabHeader* slab) {
  if (relaxed(slab->home) != heap || !heap->attached || !is_shared(slab)) return false;
  if (slab::returned_count(slab) > slab::kMostDrained) return false;
  if (!shard::reclaim(slab, heap)) return false;
  heap->keeps_full.add(slab->size_class);
  slab::drain(slab);
  keep_slab(heap, slab);
  return true;
}

// Frees of blocks that go to the slab's own list.
__attribute__((always_inline)) inline void release_direct(Heap* heap, SlabHeader* slab, void* p);

// A live block of a slab that this heap does not own goes back there. If it were kept, it would take this
// slow way at each of its frees. There is no exchange, because it would wait for the block's cache line,
// which is another processor's. A simultaneous free of the block is found when the blocks are handed over.
__attribute__((noinline)) void release_foreign(Heap* heap, SlabHeader* slab, void* p) {
  if (!slab::is_tiny(slab)) return release_remote(heap, slab, p, look_once_more(slab, p));
  claim_block(slab, p);
  release_remote_now(slab, p);
}

// Any block in a thread's slab that this thread's heap does not own, or that is closed.
void release_in_slab(SlabHeader* slab, void* p) {
  Heap* heap = thread_heap;
  if (heap == &empty_heap) heap = attach();  // first: little time may pass between the look and the mark
  os::fetch_for_write(p);
  slab::check_block(slab, p, "free", base::refuse);
  if (was_freed(slab, p, true)) slab::double_free(slab, p, "free", base::refuse);
  if (slab::looks_free(slab, p)) slab::link_word(p) = 0;  // bytes that must not look like another free's mark
  if (heap == nullptr || heap == &ended_heap) {
    claim_block(slab, p);
    return release_remote_now(slab, p);
  }
  if (!reclaim(heap, slab)) return release_foreign(heap, slab, p);
  claim_block(slab, p);  // reclaim took long enough for others to free the block meanwhile
  if ((owner_of(slab) & kDirect) != 0) return release_direct(heap, slab, p);
  release_near(&heap->bins[slab->size_class], p);
}

}  // namespace

void give_foreign(Heap* heap, SlabHeader* slab, void* p) {
  // We are in the middle of a list, so there is no way back.
  if (kind_of(slab) != Kind::slab) bad_pointer("free", p, base::die);
  if (!slab::is_block(slab, p)) bad_bin(p, slab->size_class);
  if (!reclaim(heap, slab)) {
    if (slab::is_tiny(slab)) return release_remote_now(slab, p);
    return release_remote(heap, slab, p, note_check(p));
  }
  make_direct(heap, slab);
  release_to_slab(heap, slab, p);
}

namespace {

// For a block with a mapping of its own; no other block begins at such an address. Its header goes with the
// mapping, so only the thread that has claimed the block may look at it.
void release_mapped(void* p) {
  if (!pages::leave_mapping(p)) bad_pointer("free", p);
  SlabHeader* header = pages::header_before(p);
  if (kind_of(header) != Kind::huge || header->start != p) bad_pointer("free", p);
  if (header->user == nullptr) return release_far(header, Kind::huge);
  pages::enter_mapping(p);
  user_give(header->user, p, "free");
}

__attribute__((noinline)) void release_other(void* p) {
  if (p == nullptr) return;
  if (reinterpret_cast<uintptr_t>(p) % kRegionSize == 0) return release_mapped(p);
  SlabHeader* header = pages::find_slab(p);
  if (header == nullptr) bad_pointer("free", p);
  switch (kind_of(header)) {
    case Kind::slab:
      return release_in_slab(header, p);
    case Kind::own_slab:
      return user_give(relaxed(header->user), p, "free");
    case Kind::large:
      if (p != header->start) bad_pointer("free", p);
      if (header->user != nullptr) return user_give(header->user, p, "free");
      return free_span("free", thread_heap, header);
    case Kind::guarded:
      return modes::guards::release("free", header, p);
    default:
      bad_pointer("free", p);
  }
}

// A large block of no first-class heap. Exact, because the header has the block's start.
bool is_large(const SlabHeader* slot, const void* p) {
  return kind_of(slot) == Kind::large && slot->start == p && slot->user == nullptr;
}

__attribute__((noinline)) void after_last_direct(Heap* heap, SlabHeader* slab, Bin* bin) {
  emptied(heap, slab);
  if (add_direct(bin)) return after_direct_frees(heap, bin);
  if (takes_turn(heap) && tick_pending()) tick(kCallsAfterFree);
}

// A block was put on its slab's own list.
__attribute__((always_inline)) inline void after_put(Heap* heap, SlabHeader* slab, Bin* bin) {
  if (__builtin_expect(slab->live == 0, false)) return after_last_direct(heap, slab, bin);
  if (__builtin_expect(add_direct(bin), false)) after_direct_frees(heap, bin);
}

__attribute__((always_inline)) inline void release_direct(Heap* heap, SlabHeader* slab, void* p) {
  if (__builtin_expect(slab->full, false)) no_longer_full(heap, slab);
  slab::put_block(slab, p);
  after_put(heap, slab, slab->bin);
}

// A block of this thread's own slab that is not plainly live. It is checked closely.
__attribute__((noinline)) void release_suspect(void* p, SlabHeader* slot) {
  SlabHeader* slab = slot - slot->back;
  if (pages::find_slab(p) != slab) bad_pointer("free", p);  // an alias, a multiple of 2 TiB away
  check_live("free", slab, p);
  if ((owner_of(slab) & kDirect) != 0) return release_direct(thread_heap, slab, p);
  release_near(slab->bin, p);
}

// Most often a block of more than 8 KiB.
__attribute__((noinline)) void release_own(void* p, SlabHeader* slot) {
  Bin* bin = slot->bin;
  const bool live = slab::is_start_in_slab(slot, bin->multiplier, p) && !slab::looks_free(p);
  if (__builtin_expect(!live, false)) return release_suspect(p, slot);
  release_near(bin, p);
}

// The hooks that wanted to see it are gone, so the next frees may take the fast path again.
__attribute__((noinline)) void release_own_unseen(void* p, SlabHeader* slot) {
  if (!sees_every_call()) return_to_fast_path(thread_heap);
  release_own(p, slot);
}

__attribute__((noinline)) void release_any_direct(void* p, SlabHeader* slot, Heap* heap) {
  SlabHeader* slab = slot - slot->back;
  const bool live = slab::is_start(slot, slot->bin->multiplier, p) && !slab::looks_free(slab, p);
  if (__builtin_expect(!live, false)) return release_suspect(p, slot);
  release_direct(heap, slab, p);
}

// The usual case: a block of at most 8 KiB, whose slab is one slot and not full.
__attribute__((noinline)) void release_own_direct(void* p, SlabHeader* slot, Heap* heap) {
  Bin* bin = slot->bin;
  const bool small = reinterpret_cast<uintptr_t>(p) * bin->multiplier < relaxed(slot->free_bound);
  if (__builtin_expect(!small || slot->full || slab::looks_free(slot, p), false)) {
    return release_any_direct(p, slot, heap);
  }
  slab::put_block(slot, p);
  after_put(heap, slot, bin);
}

// The slab of p, if p is plainly a live block of another thread's slab, and not of one that this heap may
// take back; *check is noted then. Else null.
__attribute__((always_inline)) inline SlabHeader* foreign_slab(SlabHeader* slot, const Heap* heap, void* p,
                                                               uint32_t* check) {
  const Kind kind = kind_of(slot);
  if (kind != Kind::slab && kind != Kind::interior) return nullptr;
  SlabHeader* slab = kind == Kind::slab ? slot : slot - slot->back;
  // The later slot may belong to a first-class heap's slab.
  if (kind_of(slab) != Kind::slab || slab::is_tiny(slab) || relaxed(slab->home) == heap) return nullptr;
  os::fetch_for_write(p);
  if (!slab::is_start(slot, slab::row_of(slab).multiplier, p)) return nullptr;
  *check = note_check(p);
  // A page that its owner purges meanwhile reads as zeros; the slab is closed before.
  return slab::looks_free(p) || relaxed(slot->free_bound) == 0 ? nullptr : slab;
}

__attribute__((noinline)) void release_any_foreign(void* p, SlabHeader* slot, Heap* heap) {
  uint32_t check;
  SlabHeader* slab = heap->attached ? foreign_slab(slot, heap, p, &check) : nullptr;
  slab != nullptr ? release_remote(heap, slab, p, check) : release_other(p);
}

// `check` was noted before.
__attribute__((always_inline)) inline void add_if_live(void* p, SlabHeader* slot, Heap* heap,
                                                       uint32_t check) {
  const bool live = !slab::looks_free(p) && relaxed(slot->free_bound) != 0;
  if (__builtin_expect(!live, false)) return release_any_foreign(p, slot, heap);
  add_remote(heap, slot, p, check);
}

// A block of release_foreign_block that the program may not have written to.
__attribute__((noinline)) void release_unwritten(void* p, SlabHeader* slot, Heap* heap) {
  add_if_live(p, slot, heap, note_check(p));
}

// The usual case: a block of at most 8 KiB, in the first slot of a slab. The same as release_any_foreign.
__attribute__((always_inline)) inline void release_foreign_block(void* p, SlabHeader* slot, Heap* heap) {
  const bool foreign = !slab::is_tiny(slot) && relaxed(slot->home) != heap;
  if (__builtin_expect(!foreign || !heap->attached, false)) return release_any_foreign(p, slot, heap);
  os::fetch_for_write(p);
  const bool starts = slab::product_of(slab::row_of(slot), p) < relaxed(slot->free_bound);
  if (__builtin_expect(!starts, false)) return release_any_foreign(p, slot, heap);
  const uintptr_t check = read_check(p);
  if (__builtin_expect(slab::is_like_check(check), false)) return release_unwritten(p, slot, heap);
  add_if_live(p, slot, heap, static_cast<uint32_t>(check));
}

// Most often another thread's block, a large one, or null. For threads without a heap, too.
__attribute__((noinline)) void release_not_own(void* p, SlabHeader* slot, Heap* heap) {
  if (kind_of(slot) == Kind::slab) return release_foreign_block(p, slot, heap);
  if (is_large(slot, p)) return free_span("free", heap, slot);
  if (p != nullptr) release_any_foreign(p, slot, heap);
}

// kSeen: a mode sees every call, and what is not plainly the thread's own takes the long way.
template <bool kSeen>
__attribute__((always_inline)) inline void release_by_owner(void* p, SlabHeader* slot) {
  Heap* heap = thread_heap;
  const uintptr_t owner = owner_of(slot);
  if (owner == reinterpret_cast<uintptr_t>(heap)) {
    return __builtin_expect(heap->thread != 0, true) ? release_own(p, slot) : release_own_unseen(p, slot);
  }
  if (owner == reinterpret_cast<uintptr_t>(heap) + kDirect) return release_own_direct(p, slot, heap);
  kSeen ? release_other(p) : release_not_own(p, slot, heap);
}

}  // namespace

void release_unseen(void* p, SlabHeader* slot) {
  release_by_owner<true>(p, slot);
}

// Rare cases are tail calls, so that the usual ones need no stack frame.
void release_slow(void* p, SlabHeader* slot) {
  if (__builtin_expect(sees_every_call(), false)) return modes::release(p, slot);
  release_by_owner<false>(p, slot);
}

void release_slow_delete(void* p, SlabHeader* slot) {
  if (p != nullptr && sees_every_call()) modes::note_delete(p);
  release_slow(p, slot);
}

}  // namespace hummock::heap
