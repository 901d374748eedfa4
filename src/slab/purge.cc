// The purge under way, of what others freed: see gone.h.
#include "slab/block_set.h"

namespace hummock::slab {
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
  uint16_t gone = 0;     // and those that are gone when it ends
  uint16_t pages = 0;    // still to be purged
  uint16_t stay = 0;     // sorting: pages whose blocks are still to be put into the new chain
  BlockSet set;          // blocks of the chain, and of `before`
};

Purge under_way;

// The slab's address, and its pages with blocks that are gone: one word, so that nobody takes the pages of
// one slab for another's. 0: there is none. Atomic, relaxed.
uint64_t leaving;

constexpr unsigned kPagesBits = 16;

void set_leaving(const SlabHeader* slab, uint16_t pages) {
  const uint64_t word = uint64_t{reinterpret_cast<uintptr_t>(slab)} << kPagesBits | pages;
  __atomic_store_n(&leaving, pages == 0 ? 0 : word, __ATOMIC_RELAXED);
}

// The blocks that leave are not in use, and the word will say so together with the flag.
void note_leaving(SlabHeader* slab, uint16_t pages) {
  under_way.gone = static_cast<uint16_t>(under_way.before | pages);
  set_leaving(slab, under_way.gone);
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
  under_way.stage = leave != 0 ? Stage::sorting : Stage::purging;
  if (leave == 0) return;
  note_leaving(slab, leave);
  under_way.stay = static_cast<uint16_t>(~under_way.gone);
  set_relaxed(under_way.held.first, static_cast<void*>(nullptr));
  under_way.held.last = nullptr;
}

void mark_some(SlabHeader* slab, Slice* slice) {
  Purge& p = under_way;
  const bool tiny = is_tiny(slab);  // not purged: the caller's look may have been at an earlier slab
  if (tiny) {
    mark(slab, &p.set, {&p.next, &p.left, &p.held.last}, slice,
         [slab](void* block) { return next_remote_free(slab, block); });
  } else {
    mark(slab, &p.set, {&p.next, &p.left, &p.held.last}, slice, next_remote);
  }
  if (p.left != 0 || !pay_for_set(slice)) return;
  const unsigned free = tiny ? 0 : free_pages(slab, p.set) & ~unsigned{p.before};
  end_marking(slab, can_purge(slab, free) ? static_cast<uint16_t>(free) : uint16_t{0});
}

void sort_some(SlabHeader* slab, Slice* slice) {
  Purge& p = under_way;
  void* first = p.held.first;
  const bool done = sort(slab, p.set, {&p.stay, &first, &p.held.last}, slice, set_next_remote);
  set_relaxed(p.held.first, first);
  if (done) p.stage = Stage::purging;
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
  under_way.held = {slab, nullptr, nullptr, count_of(word), word & kGoneBits};
  under_way.next = chain_of(word);
  under_way.left = count_of(word) - count_gone(slab, under_way.before);
  set_relaxed(under_way.held.first, under_way.next);
  under_way.gone = under_way.before;
  // Blocks in pages that are gone stay free for all who look, and the slab stays closed.
  set_leaving(slab, under_way.before);
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
  if (under_way.stage == Stage::marking) mark_some(slab, slice);
  if (under_way.stage == Stage::sorting) sort_some(slab, slice);
  if (under_way.stage != Stage::purging) return false;
  const uint16_t pages = take_pages(&under_way.pages, slice);
  // If the system refuses to take a page, it counts as gone all the same, until it is handed out.
  if (pages != 0) *bytes += pages::purge_inside(slab, pages);
  if (under_way.pages != 0) return false;
  *held = under_way.held;
  if (under_way.gone != under_way.before) {
    held->gone = kGone | ((held->gone + kNextTurn) & kTurn);
    // relaxed: push_remote releases it, together with the flag that says that it counts.
    __atomic_store_n(&slab->gone.remote, under_way.gone, __ATOMIC_RELAXED);
  }
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
