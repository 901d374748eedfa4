// Sets of a slab's blocks, and the pages where all blocks are in a set. For gone.cc and purge.cc.
#ifndef HUMMOCK_SLAB_BLOCK_SET_H
#define HUMMOCK_SLAB_BLOCK_SET_H

#include "slab/gone.h"

namespace hummock::slab {

template <class Act>
void for_pages(uint16_t pages, Act act) {
  for (unsigned left = pages; left != 0; left &= left - 1) act(static_cast<unsigned>(__builtin_ctz(left)));
}

// Blocks of a slab, by their numbers.
class BlockSet {
 public:
  void add(size_t number) { bits_[number / 64] |= uint64_t{1} << (number % 64); }
  bool has(size_t number) const { return (bits_[number / 64] >> (number % 64) & 1) != 0; }
  void add_all(Range range) {
    for_words(range, [this](size_t i, uint64_t mask) { bits_[i] |= mask; });
  }
  template <class Act>
  void for_each(Range range, Act act) const {
    for_words(range, [&](size_t i, uint64_t mask) {
      for (uint64_t left = bits_[i] & mask; left != 0; left &= left - 1) {
        act(i * 64 + static_cast<size_t>(__builtin_ctzll(left)));
      }
    });
  }
  bool has_all(Range range) const {
    bool all = true;
    for_words(range, [&](size_t i, uint64_t mask) { all = all && (bits_[i] & mask) == mask; });
    return all;
  }

 private:
  template <class Act>
  static void for_words(Range range, Act act) {
    while (range.first < range.end) {
      const size_t in_word = range.first % 64, left = range.end - range.first;
      const size_t count = left < 64 - in_word ? left : 64 - in_word;
      act(range.first / 64, ~uint64_t{0} >> (64 - count) << in_word);
      range.first += count;
    }
  }

  uint64_t bits_[kSlotSize / kStep / 64] = {};
};

// What walks need of a slab, at hand: a chain may have thousands of blocks.
class Numbers {
 public:
  explicit Numbers(const SlabHeader* slab)
      : row_(row_of(slab)), start_(slab->start), carved_(relaxed(slab->carved)) {}

  // The number of a carved block; kNone for all other addresses.
  static constexpr size_t kNone = SIZE_MAX;
  size_t of(const void* block) const {
    const auto offset = static_cast<size_t>(static_cast<const char*>(block) - start_);
    const size_t number = offset < kMostBytes ? block_index(row_, offset) : carved_;
    return number < carved_ && number * row_.block_size == offset ? number : kNone;
  }

 private:
  static constexpr size_t kMostBytes = 8 * kSlotSize;  // of a slab: see block_index

  const SizeClass& row_;
  const char* start_;
  size_t carved_;
};

// Blocks of a list that are still to be put into a set.
struct Unmarked {
  void** next;
  uint32_t* left;
  void** last;  // the last that was
};

// Puts the next blocks of a list into the set.
template <class Next>
void mark(SlabHeader* slab, BlockSet* set, Unmarked unmarked, Slice* slice, Next next_of) {
  constexpr const char* kBroken = "a free block was written to or freed twice";
  const Numbers numbers(slab);
  void* block = *unmarked.next;
  void* last = *unmarked.last;
  for (; *unmarked.left != 0 && slice->blocks != 0; --*unmarked.left, --slice->blocks) {
    const size_t number = numbers.of(block);
    if (__builtin_expect(number == Numbers::kNone || set->has(number), false)) corrupted(slab, kBroken);
    void* next = next_of(block);
    if (__builtin_expect(next == kNoLink, false)) corrupted(slab, kBroken);
    set->add(number);
    last = block;
    block = next;
  }
  *unmarked.next = block;
  *unmarked.last = last;
}

// To see which pages of a set are free takes as long as a walk along so many blocks. False: that is too much
// for the slice.
bool pay_for_set(Slice* slice);

// Pages of which blocks are still to be put into a new list.
struct Unsorted {
  uint16_t* pages;
  void** first;  // of the list
  void** last;
};

// Puts the set's blocks in the next pages there. Whole pages at a time: most pages leave, as a rule, so this
// is less than to walk the old list. True: it is done.
template <class Link>
bool sort(SlabHeader* slab, const BlockSet& set, Unsorted unsorted, Slice* slice, Link link) {
  const size_t size = row_of(slab).block_size;
  void* first = *unsorted.first;
  while (*unsorted.pages != 0) {
    const Range range = range_in_page(slab, static_cast<unsigned>(__builtin_ctz(*unsorted.pages)));
    const size_t blocks = range.end - range.first + 1;  // an empty page takes a while, too
    if (blocks > slice->blocks) {
      slice->blocks = 0;
      break;
    }
    slice->blocks -= blocks;
    *unsorted.pages &= static_cast<uint16_t>(*unsorted.pages - 1);
    set.for_each(range, [&](size_t number) {
      void* block = slab->start + number * size;
      if (first == nullptr) *unsorted.last = block;
      link(block, first);
      first = block;
    });
  }
  *unsorted.first = first;
  return *unsorted.pages == 0;
}

// Takes those of the pages that the slice's system calls suffice for.
uint16_t take_pages(uint16_t* pages, Slice* slice);

void add_pages(const SlabHeader* slab, uint16_t pages, BlockSet* set);
// Pages where all blocks are in the set: those that begin there, and one that begins before and reaches into
// it.
uint16_t free_pages(const SlabHeader* slab, const BlockSet& set);
// Those of the pages in which a block begins.
uint16_t with_blocks(const SlabHeader* slab, uint16_t pages);
// Can these pages be purged? Where that splits a huge page, only if they are many.
bool can_purge(const SlabHeader* slab, unsigned pages);
// They are: so many blocks that begin there are gone.
void note_gone(const SlabHeader* slab, uint32_t blocks);

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_BLOCK_SET_H
