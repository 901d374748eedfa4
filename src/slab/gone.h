// Parts of a slab, here called its pages, that were purged while other blocks of the slab are in use.
//
// A page may be purged when every block that reaches into it is free. Blocks that begin in it are then taken
// out of all lists, because their links are gone; a block that begins before it and reaches into it stays in
// its list. So the pages alone say which blocks are free and in no list.
#ifndef HUMMOCK_SLAB_GONE_H
#define HUMMOCK_SLAB_GONE_H

#include "slab/slab.h"

namespace hummock::slab {

struct Range {
  size_t first, end;  // numbers of blocks
};

// Where a block begins, from the start of the slab's first slot.
inline size_t offset_of(const SlabHeader* slab, size_t number) {
  return reinterpret_cast<uintptr_t>(slab->start) % kSlotSize + number * row_of(slab).block_size;
}

// The first block that begins at `offset` bytes into the slot, or later.
inline size_t first_from(const SlabHeader* slab, size_t offset) {
  const size_t skipped = offset_of(slab, 0);
  if (offset <= skipped) return 0;
  const size_t number = base::divide_up(offset - skipped, size_t{row_of(slab).block_size});
  return number < slab->capacity ? number : slab->capacity;
}

constexpr unsigned kPages = kSlotSize / kSmallPage;  // of a slab, however long it is

// In which of them a block begins.
inline unsigned page_of(const SlabHeader* slab, const void* block) {
  const uintptr_t skipped = reinterpret_cast<uintptr_t>(slab->start) % kSlotSize;
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - slab->start) + skipped;
  return static_cast<unsigned>(offset / part_bytes(slab));
}

// The blocks that begin in a page.
inline Range range_in_page(const SlabHeader* slab, unsigned page) {
  return {first_from(slab, page * part_bytes(slab)), first_from(slab, (page + 1) * part_bytes(slab))};
}

uint32_t count_gone(const SlabHeader* slab, uint16_t pages);

// Purges pages whose blocks are all in the slab's own free list. For the slab's owner. Returns the bytes.
size_t purge_own(SlabHeader* slab);

// ---- Purging what others freed -------------------------------------------------------------------
// One thread of the process at a time may be between take_back and the push_remote that ends it.

// Blocks that other threads freed and nobody drained. While they are held they count as in use again.
struct Held {
  void* first;
  void* last;
  uint32_t count;  // in the chain, and of gone.remote
  uint64_t gone;   // the flags for push_remote
};

// Takes the chain of `word`, the slab's remote word; false if the word has changed meanwhile. Until all of it
// is pushed back, the slab cannot become empty, so it stays this slab.
bool take_back(SlabHeader* slab, uint64_t word, Held* held);

// Pages make at most half as many runs, so with so many calls each they go in at most three purges: fewer
// than the turns of the remote word.
inline constexpr unsigned kCallsPerPurge = 3;
static_assert(kPages / 2 <= 3 * kCallsPerPurge);

// Purges the pages that hold nothing but these blocks, except *done, with at most *calls to the system. Adds
// the pages to *done, subtracts the calls. Returns the bytes. Where *calls are fewer than kCallsPerPurge, all
// of the pages go or none does; then no call is left.
size_t purge(SlabHeader* slab, Held* held, uint16_t* done, unsigned* calls);

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_GONE_H
