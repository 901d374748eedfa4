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

// Do pages of so many bytes hold nothing but blocks that look free? A guess: some of these may be in a thread
// cache. Racy.
bool seems_free(const SlabHeader* slab, size_t bytes);

// ---- The purge under way, in purge.cc ------------------------------------------------------------

// What one call may still do. A call that goes on with a purge has at first kLeastSlice blocks or more.
inline constexpr size_t kLeastSlice = kSmallPage / kStep + 1;
struct Slice {
  unsigned calls;  // to the system
  size_t blocks;   // to be looked at
  bool is_spent() const { return calls == 0 || blocks == 0; }
};

// Blocks that other threads freed and nobody drained.
struct Held {
  SlabHeader* slab;
  void* first;
  void* last;
  uint32_t count;  // in the chain, and of gone.remote
  uint64_t gone;   // the flags for push_remote
};

// The purge of one slab goes in slices, because a chain may have 4,096 blocks. At most one of what others
// freed is under way in the process, and its caller's lock guards it. From begin_purge() until all is pushed
// back the blocks count as in use again; so the slab cannot become empty, and stays this slab. A slab's owner
// has another one (slab/own_purge.h).

// Takes the chain of `word`, the slab's remote word; false if the word has changed meanwhile.
bool begin_purge(SlabHeader* slab, uint64_t word);
bool purge_is_under_way();
// Purges the pages that hold nothing but these blocks, as far as the slice reaches. Adds the bytes to *bytes.
// True: it is done, and the caller must push *held back.
bool go_on_purging(Slice* slice, Held* held, size_t* bytes);

// Pages of the slab that had gone when the purge under way began, and those that it takes. Blocks that begin
// there are in no list.
unsigned leaving_pages(const SlabHeader* slab);

// How many of the slab's blocks the purge under way holds: a figure. Racy.
uint32_t held_blocks(const SlabHeader* slab);

// Does the purge under way hold this free block, or may it stand in the list that begins there? For a search.
// Racy.
bool is_held(const SlabHeader* slab, const void* block);
void* held_list();

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_GONE_H
