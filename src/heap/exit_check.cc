// At the program's end: finds blocks that nobody met since two threads freed them at once, or since they were
// written to after their free.
#include "heap/diagnose.h"
#include "heap/magazine.h"
#include "heap/refill.h"
#include "heap/remote.h"

namespace hummock::heap {
namespace {

constexpr unsigned kMostChecked = 300;

void check_marked(const SlabHeader* slab, void* block) {
  if (!slab::stands_in(slab, block) || !slab::looks_free(slab, block)) bad_bin(block, slab->size_class);
}
void* check_next(const SlabHeader* slab, void* block, void* next) {
  if (next == slab::kNoLink) bad_bin(block, slab->size_class);
  return next;
}

// The free list of a slab of ours, and what others freed there, to which they only add.
void check_slab(const Heap* heap, const SlabHeader* slab) {
  if ((owner_of(slab) & ~kDirect) != reinterpret_cast<uintptr_t>(heap)) return;
  void* block = slab->free;
  for (unsigned left = kMostChecked; left != 0 && block != slab::end_of(slab); --left) {
    check_marked(slab, block);
    block = check_next(slab, block, slab::next_free(slab, block));
  }
  // acquire: pairs with the release of push_remote.
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  if ((word & slab::kGone) != 0) return;
  block = slab::chain_of(word);
  for (unsigned left = kMostChecked; left != 0 && block != nullptr; --left) {
    const bool good = slab::stands_in(slab, block) && slab::looks_free(slab, block);
    void* next = good ? slab::next_remote_free(slab, block) : slab::kNoLink;
    // A trim of another thread may have taken the chain, and turn it round.
    if (next == slab::kNoLink && __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) != word) return;
    check_marked(slab, block);
    block = check_next(slab, block, next);
  }
}

void check_slabs(const Heap* heap, const SlabHeader* slab) {
  for (unsigned left = kMostChecked; left != 0 && slab != nullptr; --left, slab = slab->next) {
    check_slab(heap, slab);
  }
}

// Some of its blocks, and that it has so many. Where it has not, a block of it is in another list, too.
void check_magazine(const Bin& bin, unsigned size_class) {
  void* block = bin.blocks;
  unsigned count = 0;
  for (; count != kMostChecked && block != &bin; ++count) {
    void* next = pages::find_slab(block) == nullptr ? slab::kNoLink : slab::next_of(block);
    if (next == slab::kNoLink || count == count_held(bin)) bad_bin(block, size_class);
    block = next;
  }
  if (block == &bin && count != count_held(bin)) bad_bin(bin.blocks, size_class);
}

// What other threads freed and take_one() would hand out.
void check_rest(const slab::Rest& rest, unsigned size_class) {
  if (rest.links != slab::Rest::Links::remote) return;
  void* block = rest.first;
  unsigned left = rest.count < kMostChecked ? rest.count : kMostChecked;
  for (; left != 0; --left) {
    const SlabHeader* slab = pages::find_slab(block);
    if (slab == nullptr || slab->size_class != size_class) bad_bin(block, size_class);
    check_marked(slab, block);
    block = check_next(slab, block, slab::next_remote_free(slab, block));
  }
}

}  // namespace

void check_freed_lately() {
  Heap* heap = thread_heap;
  if (!heap->attached) return;
  flush_remote(heap);
  for (unsigned c = 1; c < slab::kTiny; ++c) {
    check_magazine(heap->bins[c], c);
    check_rest(heap->rest[c], c);
    if (heap->current[c] != nullptr) check_slab(heap, heap->current[c]);
    check_slabs(heap, heap->partial[c].front());
  }
  check_slabs(heap, heap->full.front());
}

}  // namespace hummock::heap
