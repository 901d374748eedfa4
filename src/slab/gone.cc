#include "slab/gone.h"

namespace hummock::slab {
namespace {

template <class Act>
void for_pages(uint16_t pages, Act act) {
  for (unsigned left = pages; left != 0; left &= left - 1) act(static_cast<unsigned>(__builtin_ctz(left)));
}

// Which blocks of a slab are in a chain, by their numbers.
class BlockSet {
 public:
  void add(size_t number) { bits_[number / 64] |= uint64_t{1} << (number % 64); }
  bool has_all(Range range) const {
    for (size_t i = range.first; i < range.end; ++i) {
      if ((bits_[i / 64] >> (i % 64) & 1) == 0) return false;
    }
    return true;
  }

 private:
  uint64_t bits_[kSlotSize / kStep / 64] = {};
};

// The blocks that begin in the page or reach into it.
Range range_touching(const SlabHeader* slab, unsigned page) {
  Range range = range_in_page(slab, page);
  if (range.first > 0 && offset_of(slab, range.first) > page * part_bytes(slab)) --range.first;
  return range;
}

size_t number_of(const SlabHeader* slab, const void* block) {
  return block_index(row_of(slab), static_cast<size_t>(static_cast<const char*>(block) - slab->start));
}

struct Chain {
  void* first;
  uint32_t count;
};

void add_gone(const SlabHeader* slab, uint16_t gone, BlockSet* set) {
  for_pages(gone, [&](unsigned page) {
    const Range range = range_in_page(slab, page);
    for (size_t i = range.first; i < range.end; ++i) set->add(i);
  });
}

// The blocks of the chain, and those of pages that are already gone.
BlockSet blocks_of(const SlabHeader* slab, Chain chain, uint16_t gone) {
  BlockSet set;
  add_gone(slab, gone, &set);
  void* block = chain.first;
  for (uint32_t left = chain.count; left != 0; --left, block = next_remote_free(slab, block)) {
    if (!is_listable(slab, block)) {
      corrupted(slab, "a block that another thread freed was written to or freed twice");
    }
    set.add(number_of(slab, block));
  }
  return set;
}

// Pages where all blocks are in the set.
uint16_t free_pages(const SlabHeader* slab, const BlockSet& set) {
  unsigned pages = 0;
  for (unsigned page = 0; page < kPages; ++page) {
    const Range range = range_touching(slab, page);
    if (range.first != range.end && set.has_all(range)) pages |= 1u << page;
  }
  return static_cast<uint16_t>(pages);
}

uint16_t with_blocks(const SlabHeader* slab, uint16_t pages) {
  unsigned with = 0;
  for_pages(pages, [&](unsigned page) {
    const Range range = range_in_page(slab, page);
    if (range.first != range.end) with |= 1u << page;
  });
  return static_cast<uint16_t>(with);
}

constexpr int kSplitPages = kPages / 4;

// Can these pages be purged? Where that splits a huge page, only if they are many.
bool can_purge(const SlabHeader* slab, unsigned pages) {
  if (pages == 0 || pages::can_purge_inside(slab)) return pages != 0;
  return __builtin_popcount(pages) >= kSplitPages && pages::split_huge_page(slab);
}

// They are: blocks that begin there are gone.
void note_gone(const SlabHeader* slab, uint32_t blocks) {
  pages::note_untouched(static_cast<ptrdiff_t>(size_t{blocks} * row_of(slab).block_size), false);
}

bool begins_in(const SlabHeader* slab, uint16_t pages, const void* block) {
  return (pages >> page_of(slab, block) & 1) != 0;
}

// Takes blocks that begin in one of the pages out of the chain, and reverses it.
void leave_out(const SlabHeader* slab, Held* held, Chain chain, uint16_t pages) {
  held->first = held->last = nullptr;
  void* block = chain.first;
  for (uint32_t left = chain.count; left != 0; --left) {
    void* next = next_remote_free(slab, block);
    if (!begins_in(slab, pages, block)) {
      if (held->first == nullptr) held->last = block;
      link_remote(slab, block, held->first);
      held->first = block;
    }
    block = next;
  }
}

// Walks the slab's own free list. `act` may change the block's link.
template <class Act>
void for_free(SlabHeader* slab, Act act) {
  void* block = slab->free;
  for (size_t left = slab->carved; block != end_of(slab); --left) {
    if (left == 0 || !is_listable(slab, block)) {
      corrupted(slab, "a freed block was written to or freed twice");
    }
    void* next = next_free(slab, block);
    act(block);
    block = next;
  }
}

}  // namespace

size_t purge_own(SlabHeader* slab) {
  const uint16_t before = slab->gone.own;
  if (slab->free == end_of(slab) || is_tiny(slab)) return 0;
  BlockSet set;
  add_gone(slab, before, &set);
  for_free(slab, [&](void* block) { set.add(number_of(slab, block)); });
  const uint16_t free = static_cast<uint16_t>(free_pages(slab, set) & ~unsigned{before});
  if (!can_purge(slab, free)) return 0;
  const uint16_t gone = with_blocks(slab, free);
  void* list = end_of(slab);
  for_free(slab, [&](void* block) {
    if (begins_in(slab, gone, block)) return;
    link_free(slab, block, list);
    list = block;
  });
  slab->free = list;
  set_relaxed(slab->gone.own, static_cast<uint16_t>(before | gone));
  if (gone != 0) close_frees(slab);
  note_gone(slab, count_gone(slab, gone));
  return pages::purge_inside(slab, free);
}

uint32_t count_gone(const SlabHeader* slab, uint16_t pages) {
  uint32_t count = 0;
  for_pages(pages, [&](unsigned page) {
    const Range range = range_in_page(slab, page);
    count += static_cast<uint32_t>(range.end - range.first);
  });
  return count;
}

bool take_back(SlabHeader* slab, uint64_t word, Held* held) {
  // acquire: pairs with the release of push_remote. This also shows what the slab's creator wrote, because
  // that was before the blocks were handed out.
  if (!__atomic_compare_exchange_n(&slab->remote, &word, word & (kQueued | kSharedBit), false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return false;
  }
  *held = {chain_of(word), nullptr, count_of(word), word & kGoneBits};
  return true;
}

size_t purge(SlabHeader* slab, Held* held, uint16_t* done, unsigned* calls) {
  uint16_t before = 0;  // nobody else writes it
  if ((held->gone & kGone) != 0) before = __atomic_load_n(&slab->gone.remote, __ATOMIC_RELAXED);
  const Chain chain = {held->first, held->count - count_gone(slab, before)};
  unsigned free = 0;
  if (kind_of(slab) == Kind::slab && !is_tiny(slab))
    free = free_pages(slab, blocks_of(slab, chain, before)) & ~(unsigned{before} | *done);
  if (!can_purge(slab, free)) free = 0;
  const unsigned all = free;
  unsigned made = *calls;
  free = pages::pages_within(static_cast<uint16_t>(free), &made);
  if (free != all && *calls < kCallsPerPurge) free = 0, made = *calls;
  *done |= static_cast<uint16_t>(free);
  *calls -= made;
  const uint16_t gone = with_blocks(slab, static_cast<uint16_t>(free));
  leave_out(slab, held, chain, gone);  // first: the links are in the pages
  if (gone != 0) {
    const uint32_t count = count_gone(slab, gone);
    note_taken(slab, count);
    note_gone(slab, count);
    held->gone = kGone | ((held->gone + kNextTurn) & kTurn);
    // relaxed: push_remote releases it, together with the flag that says that it counts.
    __atomic_store_n(&slab->gone.remote, static_cast<uint16_t>(before | gone), __ATOMIC_RELAXED);
    // The owner opens the slab again when it has taken these blocks back. It may also do so in a race,
    // between this and push_remote; then a block there that is freed twice is reported when it is handed out.
    close_frees(slab);
  }
  // If the system refuses to take a page, it counts as gone all the same, until it is handed out.
  return free == 0 ? 0 : pages::purge_inside(slab, static_cast<uint16_t>(free));
}

}  // namespace hummock::slab
