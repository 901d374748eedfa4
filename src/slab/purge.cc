// The purge under way: see gone.h.
#include "slab/block_set.h"

namespace hummock::slab {
namespace {

enum class Stage : uint8_t {
  none,
  marking,  // the blocks of all lists go into the set
  sorting,  // of the blocks in pages that stay a new list is made
  purging,
};

struct Purge {
  Stage stage = Stage::none;
  Held held = {};         // later than marking: what stays. `first` is atomic, relaxed
  void* next = nullptr;   // marking: block of a list
  uint32_t own_left = 0;  // marking: so many blocks from there are of the owner's list
  uint32_t left = 0;      // marking: so many of the chain
  void* chain = nullptr;  // marking: comes after the owner's list. Atomic, relaxed
  uint16_t before = 0;    // pages that were gone when it began
  uint16_t gone = 0;      // and those that are gone when it ends
  uint16_t pages = 0;     // still to be purged
  uint16_t stay = 0;      // sorting: pages whose blocks are still to be put into the new list
  BlockSet set;           // blocks of the lists, and of `before`
};

Purge under_way;

// The slab's address, and its pages with blocks that are gone: one word, so that nobody takes the pages of
// one slab for another's. 0: there is none. Atomic, relaxed.
uint64_t leaving;

// The same for how many blocks the purge under way holds.
uint64_t holding;

constexpr unsigned kPagesBits = 16;

constexpr const char* kBrokenList = "a free block was written to or freed twice";

void set_of_slab(uint64_t* word, const SlabHeader* slab, uint16_t value) {
  const uint64_t both = uint64_t{reinterpret_cast<uintptr_t>(slab)} << kPagesBits | value;
  __atomic_store_n(word, value == 0 ? 0 : both, __ATOMIC_RELAXED);
}
uint16_t of_slab(const uint64_t* word, const SlabHeader* slab) {
  const uint64_t both = __atomic_load_n(word, __ATOMIC_RELAXED);
  return both >> kPagesBits == reinterpret_cast<uintptr_t>(slab) ? static_cast<uint16_t>(both) : uint16_t{0};
}

void begin_sorting(uint16_t stay) {
  under_way.stage = Stage::sorting;
  under_way.stay = stay;
  set_relaxed(under_way.held.first, static_cast<void*>(nullptr));
  under_way.held.last = nullptr;
}

// The blocks that leave are not in use, and the word will say so together with the flag.
void note_leaving(SlabHeader* slab, uint16_t pages) {
  under_way.gone = static_cast<uint16_t>(under_way.before | pages);
  set_of_slab(&leaving, slab, under_way.gone);
  // The owner opens the slab again when it has taken these blocks back. It may also do so in a race, between
  // this and push_remote; then a block there that is freed twice is reported when it is handed out.
  close_frees(slab);
  const uint32_t count = count_gone(slab, pages);
  note_taken(slab, count);
  note_gone(slab, count);
}

// Which pages go is known now.
void end_marking(SlabHeader* slab, uint16_t pages) {
  under_way.pages = pages;
  const uint16_t leave = with_blocks(slab, pages);
  if (leave != 0) note_leaving(slab, leave);
  // A chain from which nothing leaves stays as it is.
  if (leave != 0 || under_way.held.own) return begin_sorting(static_cast<uint16_t>(~under_way.gone));
  under_way.stage = Stage::purging;
}

// So many of the blocks that are left are for this slice.
uint32_t take_share(Slice* slice, uint32_t* left) {
  const auto most = static_cast<uint32_t>(slice->blocks < *left ? slice->blocks : *left);
  *left -= most;
  slice->blocks -= most;
  return most;
}

// To see which pages of a set are free takes as long as a walk along so many blocks.
constexpr size_t kBlocksPerSet = 80;
static_assert(kBlocksPerSet <= kLeastSlice);

// Puts the next blocks of a list into the set.
template <class Next>
void mark(SlabHeader* slab, uint32_t most, Next next_of) {
  const Numbers numbers(slab);
  void* block = under_way.next;
  void* last = under_way.held.last;
  for (; most != 0; --most) {
    const size_t number = numbers.of(block);
    if (__builtin_expect(number == Numbers::kNone || under_way.set.has(number), false))
      corrupted(slab, kBrokenList);
    void* next = next_of(block);
    if (__builtin_expect(next == kNoLink, false)) corrupted(slab, kBrokenList);
    under_way.set.add(number);
    last = block;
    block = next;
  }
  under_way.next = block;
  under_way.held.last = last;
}

void mark_some(SlabHeader* slab, Slice* slice) {
  if (under_way.own_left != 0) {
    mark(slab, take_share(slice, &under_way.own_left), [](void* block) { return next_of(block); });
    if (under_way.own_left != 0) return;
    under_way.next = under_way.chain;
    set_relaxed(under_way.chain, static_cast<void*>(nullptr));
  }
  const bool tiny = is_tiny(slab);  // not purged: the caller's look may have been at an earlier slab
  const uint32_t most = take_share(slice, &under_way.left);
  tiny ? mark(slab, most, [slab](void* block) { return next_remote_free(slab, block); })
       : mark(slab, most, next_remote);
  if (under_way.left != 0) return;
  if (slice->blocks < kBlocksPerSet) {
    slice->blocks = 0;
    return;
  }
  slice->blocks -= kBlocksPerSet;
  const unsigned free = tiny ? 0 : free_pages(slab, under_way.set) & ~unsigned{under_way.before};
  end_marking(slab, can_purge(slab, free) ? static_cast<uint16_t>(free) : uint16_t{0});
}

// Whole pages at a time. Most pages leave, as a rule, so this is less than to walk the old lists.
void sort(SlabHeader* slab, Slice* slice) {
  const size_t size = row_of(slab).block_size;
  const bool own = under_way.held.own;
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
      own ? set_next(block, first) : set_next_remote(block, first);
      first = block;
    });
  }
  set_relaxed(under_way.held.first, first);
  if (under_way.stay == 0) under_way.stage = Stage::purging;
}

// Purges the pages. False: some are left.
bool purge_some(SlabHeader* slab, Slice* slice, size_t* bytes) {
  unsigned calls = slice->calls;
  const uint16_t pages = pages::pages_within(under_way.pages, &calls);
  slice->calls -= calls;
  under_way.pages = static_cast<uint16_t>(under_way.pages & ~unsigned{pages});
  // If the system refuses to take a page, it counts as gone all the same, until it is handed out.
  if (pages != 0) *bytes += pages::purge_inside(slab, pages);
  return under_way.pages == 0;
}

// The owner's list and pages count as others' from here on.
void take_own_list(SlabHeader* slab) {
  Held& held = under_way.held;
  const uint32_t listed = count_own(slab);
  held.own = true;
  held.count += slab->carved - uint32_t{slab->live};
  slab->live = slab->carved;
  note_returned(static_cast<ptrdiff_t>(size_t{listed} * row_of(slab).block_size));
  under_way.before |= slab->gone.own;
  set_relaxed(slab->gone.own, uint16_t{0});
  if (listed == 0) return;
  under_way.own_left = listed;
  set_relaxed(under_way.chain, under_way.next);
  under_way.next = slab->free;
  set_relaxed(held.first, slab->free);
  slab->free = end_of(slab);
}

}  // namespace

bool begin_purge(SlabHeader* slab, uint64_t word, bool own) {
  // acquire: pairs with the release of push_remote. This also shows what the slab's creator wrote, because
  // that was before the blocks were handed out.
  if (!__atomic_compare_exchange_n(&slab->remote, &word, word & (kQueued | kSharedBit), false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return false;
  }
  under_way.before = 0;  // nobody else writes it
  if ((word & kGone) != 0) under_way.before = __atomic_load_n(&slab->gone.remote, __ATOMIC_RELAXED);
  under_way.held = {slab, nullptr, nullptr, count_of(word), word & kGoneBits, 0, false};
  under_way.next = chain_of(word);
  under_way.left = count_of(word) - count_gone(slab, under_way.before);
  under_way.own_left = 0;
  set_relaxed(under_way.held.first, under_way.next);
  if (own) take_own_list(slab);
  under_way.gone = under_way.before;
  // Blocks in pages that are gone stay free for all who look, and the slab stays closed.
  set_of_slab(&leaving, slab, under_way.before);
  set_of_slab(&holding, slab, static_cast<uint16_t>(under_way.held.count));
  under_way.set = BlockSet();
  add_pages(slab, under_way.before, &under_way.set);
  under_way.stage = Stage::marking;
  return true;
}

SlabHeader* slab_under_purge() {
  return under_way.stage == Stage::none ? nullptr : under_way.held.slab;
}

bool go_on_purging(Slice* slice, bool owner, Held* held, size_t* bytes) {
  SlabHeader* slab = under_way.held.slab;
  if (under_way.stage == Stage::marking) mark_some(slab, slice);
  if (under_way.stage == Stage::sorting) sort(slab, slice);
  if (under_way.stage != Stage::purging || !purge_some(slab, slice, bytes)) return false;
  if (under_way.held.own && !owner) {  // all of it becomes what others freed
    under_way.held.own = false;
    begin_sorting(static_cast<uint16_t>(~under_way.gone));
    sort(slab, slice);
    if (under_way.stage != Stage::purging) return false;
  }
  *held = under_way.held;
  held->pages = under_way.gone;
  if (under_way.gone != 0 && !held->own) {
    held->gone = kGone | ((held->gone + kNextTurn) & kTurn);
    // relaxed: push_remote releases it, together with the flag that says that it counts.
    __atomic_store_n(&slab->gone.remote, under_way.gone, __ATOMIC_RELAXED);
  }
  under_way.stage = Stage::none;
  // Before the push: after it the pages may be handed out. The push releases this, too.
  set_of_slab(&leaving, slab, 0);
  set_of_slab(&holding, slab, 0);
  set_relaxed(under_way.held.first, static_cast<void*>(nullptr));
  return true;
}

void take_held(const Held& held) {
  SlabHeader* slab = held.slab;
  const uint32_t gone = count_gone(slab, held.pages), listed = held.count - gone;
  if (listed != 0) put_run(slab, held.first, held.last, listed);
  note_taken(slab, listed);
  if (gone == 0) return;
  if (gone > slab->live) corrupted(slab, kBrokenList);
  set_relaxed(slab->gone.own, static_cast<uint16_t>(slab->gone.own | held.pages));
  slab->live = static_cast<uint16_t>(slab->live - gone);
  close_frees(slab);
}

unsigned leaving_pages(const SlabHeader* slab) {
  return of_slab(&leaving, slab);
}

uint32_t held_blocks(const SlabHeader* slab) {
  return of_slab(&holding, slab);
}

__attribute__((no_sanitize("thread"))) bool is_held(const SlabHeader* slab, const void* block) {
  if (under_way.held.slab != slab || under_way.stage != Stage::sorting) return false;
  const size_t number = Numbers(slab).of(block);
  return number != Numbers::kNone && under_way.set.has(number);
}

void* held_list() {
  return relaxed(under_way.held.first);
}

void* held_chain() {
  return relaxed(under_way.chain);
}

}  // namespace hummock::slab
