#include "slab/gone.h"

namespace hummock::slab {
namespace {

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

void add_pages(const SlabHeader* slab, uint16_t pages, BlockSet* set) {
  for_pages(pages, [&](unsigned page) { set->add_all(range_in_page(slab, page)); });
}

// Pages where all blocks are in the set: those that begin there, and one that begins before and reaches into
// it.
uint16_t free_pages(const SlabHeader* slab, const BlockSet& set) {
  const size_t part = part_bytes(slab), size = row_of(slab).block_size, skipped = offset_of(slab, 0);
  unsigned pages = 0;
  size_t first = 0;
  for (unsigned page = 0; page < kPages; ++page) {
    const size_t end = first_from(slab, (page + 1) * part);
    const bool reaches = first > 0 && skipped + first * size > page * part;
    const Range range = {reaches ? first - 1 : first, end};
    if (range.first != end && set.has_all(range)) pages |= 1u << page;
    first = end;
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

// Walks the slab's own free list. `act` may change the block's link.
template <class Act>
void for_free(SlabHeader* slab, Act act) {
  const Numbers numbers(slab);
  void* block = slab->free;
  for (size_t left = slab->carved; block != end_of(slab); --left) {
    const size_t number = numbers.of(block);
    if (left == 0 || number == Numbers::kNone || !looks_free(block)) {
      corrupted(slab, "a freed block was written to or freed twice");
    }
    void* next = next_free(slab, block);
    act(block, number);
    block = next;
  }
}

}  // namespace

size_t purge_own(SlabHeader* slab) {
  const uint16_t before = slab->gone.own;
  if (slab->free == end_of(slab) || is_tiny(slab)) return 0;
  BlockSet set;
  add_pages(slab, before, &set);
  for_free(slab, [&](void*, size_t number) { set.add(number); });
  const uint16_t free = static_cast<uint16_t>(free_pages(slab, set) & ~unsigned{before});
  if (!can_purge(slab, free)) return 0;
  const uint16_t gone = with_blocks(slab, free);
  void* list = end_of(slab);
  for_free(slab, [&](void* block, size_t) {
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

namespace {

enum class Stage : uint8_t {
  none,
  marking,  // the chain's blocks go into the set
  sorting,  // of the blocks in pages that stay a new chain is made
  purging,
};

struct Purge {
  Stage stage = Stage::none;
  Held held = {};        // marking: the whole chain; later: what stays of it. `first` is atomic, relaxed
  void* next = nullptr;  // marking: block of the chain
  uint32_t left = 0;     // marking: so many blocks from there
  uint16_t before = 0;   // pages that were gone when it began
  uint16_t pages = 0;    // still to be purged
  uint16_t stay = 0;     // sorting: pages whose blocks are still to be put into the new chain
  BlockSet set;          // blocks of the chain, and of `before`
};

Purge under_way;

// The slab's address, and its pages with blocks that leave the chain: one word, so that nobody takes the
// pages of one slab for another's. 0: there is none. Atomic, relaxed.
uint64_t leaving;

constexpr unsigned kPagesBits = 16;

constexpr const char* kBrokenChain = "a block that another thread freed was written to or freed twice";

void set_leaving(const SlabHeader* slab, uint16_t pages) {
  const uint64_t word = uint64_t{reinterpret_cast<uintptr_t>(slab)} << kPagesBits | pages;
  __atomic_store_n(&leaving, pages == 0 ? 0 : word, __ATOMIC_RELAXED);
}

// Which pages go is known now.
void begin_sorting(SlabHeader* slab, uint16_t pages) {
  under_way.pages = pages;
  const uint16_t gone = with_blocks(slab, pages);
  under_way.stage = gone != 0 ? Stage::sorting : Stage::purging;
  if (gone == 0) return;
  set_leaving(slab, gone);
  // The owner opens the slab again when it has taken these blocks back. It may also do so in a race, between
  // this and push_remote; then a block there that is freed twice is reported when it is handed out.
  close_frees(slab);
  under_way.stay = static_cast<uint16_t>(~(unsigned{gone} | under_way.before));
  set_relaxed(under_way.held.first, static_cast<void*>(nullptr));
  under_way.held.last = nullptr;
}

// So many of the blocks that are left are for this slice.
uint32_t take_share(Slice* slice) {
  const auto most = static_cast<uint32_t>(slice->blocks < under_way.left ? slice->blocks : under_way.left);
  under_way.left -= most;
  slice->blocks -= most;
  return most;
}

// To see which pages of a set are free takes as long as a walk along so many blocks.
constexpr size_t kBlocksPerSet = 80;
static_assert(kBlocksPerSet <= kLeastSlice);

// Walks the next blocks of the chain, at most so many.
template <class Next, class Note>
void walk(SlabHeader* slab, uint32_t most, Next next_of, Note note) {
  const Numbers numbers(slab);
  void* block = under_way.next;
  void* last = under_way.held.last;
  for (; most != 0; --most) {
    const size_t number = numbers.of(block);
    if (__builtin_expect(number == Numbers::kNone, false)) corrupted(slab, kBrokenChain);
    void* next = next_of(block);
    if (__builtin_expect(next == kNoLink, false)) corrupted(slab, kBrokenChain);
    note(number);
    last = block;
    block = next;
  }
  under_way.next = block;
  under_way.held.last = last;
}

void mark(SlabHeader* slab, Slice* slice) {
  const bool tiny = is_tiny(slab);  // not purged: the caller's look may have been at an earlier slab
  const uint32_t most = take_share(slice);
  if (tiny) {
    walk(
        slab, most, [slab](void* block) { return next_remote_free(slab, block); }, [](size_t) {});
  } else {
    walk(slab, most, next_remote, [](size_t number) { under_way.set.add(number); });
  }
  if (under_way.left != 0) return;
  if (slice->blocks < kBlocksPerSet) {
    slice->blocks = 0;
    return;
  }
  slice->blocks -= kBlocksPerSet;
  const unsigned free = tiny ? 0 : free_pages(slab, under_way.set) & ~unsigned{under_way.before};
  begin_sorting(slab, can_purge(slab, free) ? static_cast<uint16_t>(free) : uint16_t{0});
}

// The blocks that leave are not in use, and the word will say so together with the flag.
void end_sorting(SlabHeader* slab) {
  const auto gone = static_cast<uint16_t>(leaving_pages(slab));
  const uint32_t count = count_gone(slab, gone);
  note_taken(slab, count);
  note_gone(slab, count);
  under_way.held.gone = kGone | ((under_way.held.gone + kNextTurn) & kTurn);
  // relaxed: push_remote releases it, together with the flag that says that it counts.
  __atomic_store_n(&slab->gone.remote, static_cast<uint16_t>(under_way.before | gone), __ATOMIC_RELAXED);
  under_way.stage = Stage::purging;
}

// Whole pages at a time. Most pages leave, as a rule, so this is less than to walk the old chain.
void sort(SlabHeader* slab, Slice* slice) {
  const size_t size = row_of(slab).block_size;
  void* first = under_way.held.first;
  while (under_way.stay != 0) {
    const Range range = range_in_page(slab, static_cast<unsigned>(__builtin_ctz(under_way.stay)));
    const size_t blocks = range.end - range.first + 1;  // an empty page takes a while, too
    if (blocks > slice->blocks) {
      slice->blocks = 0;
      break;
    }
    slice->blocks -= blocks;
    under_way.stay &= static_cast<uint16_t>(under_way.stay - 1);
    under_way.set.for_each(range, [&](size_t number) {
      void* block = slab->start + number * size;
      if (first == nullptr) under_way.held.last = block;
      set_next_remote(block, first);
      first = block;
    });
  }
  set_relaxed(under_way.held.first, first);
  if (under_way.stay == 0) end_sorting(slab);
}

}  // namespace

bool begin_purge(SlabHeader* slab, uint64_t word) {
  // acquire: pairs with the release of push_remote. This also shows what the slab's creator wrote, because
  // that was before the blocks were handed out.
  if (!__atomic_compare_exchange_n(&slab->remote, &word, word & (kQueued | kSharedBit), false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return false;
  }
  under_way.before = 0;  // nobody else writes it
  if ((word & kGone) != 0) under_way.before = __atomic_load_n(&slab->gone.remote, __ATOMIC_RELAXED);
  under_way.held.slab = slab;
  set_relaxed(under_way.held.first, chain_of(word));
  under_way.held.count = count_of(word);
  under_way.held.gone = word & kGoneBits;
  under_way.held.last = nullptr;
  under_way.next = under_way.held.first;
  under_way.left = under_way.held.count - count_gone(slab, under_way.before);
  under_way.set = BlockSet();
  add_pages(slab, under_way.before, &under_way.set);
  under_way.stage = Stage::marking;
  return true;
}

bool purge_is_under_way() {
  return under_way.stage != Stage::none;
}

bool go_on_purging(Slice* slice, Held* held, size_t* bytes) {
  SlabHeader* slab = under_way.held.slab;
  if (under_way.stage == Stage::marking) mark(slab, slice);
  if (under_way.stage == Stage::sorting) sort(slab, slice);
  if (under_way.stage != Stage::purging) return false;
  unsigned calls = slice->calls;
  const uint16_t pages = pages::pages_within(under_way.pages, &calls);
  slice->calls -= calls;
  under_way.pages = static_cast<uint16_t>(under_way.pages & ~unsigned{pages});
  // If the system refuses to take a page, it counts as gone all the same, until it is handed out.
  if (pages != 0) *bytes += pages::purge_inside(slab, pages);
  if (under_way.pages != 0) return false;
  *held = under_way.held;
  under_way.stage = Stage::none;
  // Before the push: after it the pages may be handed out. The push releases this, too.
  set_leaving(slab, 0);
  set_relaxed(under_way.held.first, static_cast<void*>(nullptr));
  return true;
}

unsigned leaving_pages(const SlabHeader* slab) {
  const uint64_t word = __atomic_load_n(&leaving, __ATOMIC_RELAXED);
  return word >> kPagesBits == reinterpret_cast<uintptr_t>(slab) ? word & UINT16_MAX : 0;
}

HUMMOCK_RACY uint32_t held_blocks(const SlabHeader* slab) {
  return under_way.stage != Stage::none && under_way.held.slab == slab ? under_way.held.count : 0;
}

__attribute__((no_sanitize("thread"))) bool is_held(const SlabHeader* slab, const void* block) {
  if (under_way.held.slab != slab || under_way.stage != Stage::sorting) return false;
  const size_t number = Numbers(slab).of(block);
  return number != Numbers::kNone && under_way.set.has(number);
}

void* held_list() {
  return relaxed(under_way.held.first);
}

}  // namespace hummock::slab
