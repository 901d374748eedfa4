#include "slab/slab.h"

#include "pages/regret.h"
#include "slab/gone.h"

namespace hummock::slab {
namespace {

// Makes a list of adjacent blocks.
List link_up(SlabHeader* slab, Range range) {
  const bool tiny = is_tiny(slab);
  const size_t size = row_of(slab).block_size;
  char* block = slab->start + range.first * size;
  void* first = block;
  for (size_t left = range.end - range.first; left != 0; --left, block += size) {
    const bool last = left == 1;
    tiny ? set_tiny_next(block, last ? kTinyEnd : tiny_number(block) + 1)
         : set_next(block, last ? end_of(slab) : block + size);
  }
  return {first, static_cast<unsigned>(range.end - range.first)};
}

// Blocks whose pages are gone are in use again, or their slab ends. Returns their bytes.
size_t note_back(const SlabHeader* slab, size_t blocks) {
  const size_t bytes = blocks * row_of(slab).block_size;
  pages::note_untouched(-static_cast<ptrdiff_t>(bytes));
  return bytes;
}

void note_needed(pages::Regret* regret, size_t bytes) {
  regret->note_needed(bytes < kSmallPage ? 1 : bytes / kSmallPage);
}

// Takes the blocks of the first page that is gone. Its memory comes back when it is touched.
List take_gone(SlabHeader* slab) {
  const unsigned page = static_cast<unsigned>(__builtin_ctz(slab->gone.own));
  const Range range = range_in_page(slab, page);
  set_relaxed(slab->gone.own, static_cast<uint16_t>(slab->gone.own & (slab->gone.own - 1)));
  slab->live = static_cast<uint16_t>(slab->live + range.end - range.first);
  const size_t bytes = note_back(slab, range.end - range.first);
  note_needed(&pages::slab_regret.value, bytes);
  note_needed(&pages::own_regret.value, bytes);
  open_frees(slab);
  return link_up(slab, range);
}

// The most blocks in one call, unless a page has more: so their first lines stay in the processor's cache.
constexpr size_t kMostCarved = 16;

// Where to stop, in bytes from the slot's start: after one page of memory that was never used, so that
// nothing is touched before it is needed; later where an earlier slab of the slot touched the memory, but
// there, too, a class that needs few blocks gets few.
size_t carve_end(const SlabHeader* slab, size_t begin, bool many) {
  const size_t page = base::align_down(begin + kSmallPage, kSmallPage);
  const size_t blocks = !many && slab->carved < kMostCarved ? slab->carved : kMostCarved;
  const size_t most = base::align_down(begin + row_of(slab).block_size * blocks, kSmallPage);
  const size_t touched = slab->gone.touched * kSmallPage;
  const size_t end = touched < most ? touched : most;
  return end > page ? end : page;
}

constexpr size_t kQuarter = kSlotSize / 4;

size_t carved_bytes(const SlabHeader* slab) {
  return offset_of(slab, slab->carved);
}

struct Uncarved {
  ptrdiff_t bytes, hidden;  // as pages::Untouched has them
};
// What a slab adds to these: nothing, unless it is one slot and has handed out blocks. In whole quarters,
// because all threads add to them, and would wait for each other if they did so at each page. So up to a
// quarter more counts as hidden.
inline Uncarved uncarved(const SlabHeader* slab) {
  if (slab->slots != 1 || slab->carved == 0) return {0, 0};
  const size_t end = carved_bytes(slab);
  const size_t memory = slab->gone.hides ? kSlotSize : slab->gone.touched * kSmallPage;
  const size_t hidden = memory < end + kSmallPage ? 0 : memory - base::align_down(end, kQuarter);
  return {static_cast<ptrdiff_t>(kSlotSize - base::align_up(end, kQuarter)), static_cast<ptrdiff_t>(hidden)};
}

void note_change(const Uncarved& before, const Uncarved& now) {
  if (now.bytes == before.bytes && now.hidden == before.hidden) return;
  pages::note_untouched(now.bytes - before.bytes, now.hidden - before.hidden);
}

// Pages that have no memory are handed out. A purge of what was hidden may have taken it, and was in vain
// then. A slab's first quarter does not count: wherever slabs come and go, somebody needs that.
void note_fresh(unsigned known, unsigned pages) {
  constexpr unsigned kFirst = kQuarter / kSmallPage;
  if (known < kFirst) known = kFirst;
  if (pages > known) pages::hidden_regret.value.note_needed(pages - known);
}

// Called only when no carved block is free, so that all of them are in use afterwards.
List carve(SlabHeader* slab, bool many) {
  // It ends at the end of a page, so that few blocks share a page with blocks carved before or after.
  const size_t carved = slab->carved;
  const size_t begin = offset_of(slab, carved);
  const size_t stop = carve_end(slab, begin, many);
  const size_t end = first_from(slab, stop);
  const Range range = {carved, end > carved ? end : carved + 1};
  const List list = link_up(slab, range);
  const Uncarved before = uncarved(slab);
  set_relaxed(slab->carved, static_cast<uint16_t>(range.end));
  const auto pages = static_cast<uint8_t>(base::divide_up(carved_bytes(slab), part_bytes(slab)));
  if (pages > slab->gone.touched) {
    if (!slab->gone.hides) note_fresh(slab->gone.touched, pages);
    slab->gone.touched = pages;
  }
  note_change(before, uncarved(slab));
  slab->live = slab->carved;
  open_frees(slab);
  return list;
}

constexpr const char* kBroken = "a freed block was written to or freed twice";

// A block of the slab that is marked as free; else the lists of the slab are broken.
void check_free(const SlabHeader* slab, void* block) {
  if (!is_listable(slab, block)) corrupted(slab, kBroken);
}

}  // namespace

base::OwnLine<ptrdiff_t> returned_bytes;

unsigned gone_pages(const SlabHeader* slab) {
  unsigned pages = relaxed(slab->gone.own) | leaving_pages(slab);
  // acquire: pairs with the release of push_remote. Else pages that went before, and whose blocks have been
  // handed out again since, could be seen with a flag that was set for others.
  if ((__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & kGone) != 0) pages |= relaxed(slab->gone.remote);
  return pages;
}

bool is_gone(const SlabHeader* slab, const void* block) {
  const unsigned pages = gone_pages(slab);
  return pages != 0 && (pages >> page_of(slab, block) & 1) != 0;
}

HUMMOCK_RACY size_t count_live(const SlabHeader* slab) {
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  size_t used = (word & kSharedBit) != 0 ? slab->shared_live : slab->live;
  if (used > slab->capacity) used = slab->capacity;  // it changed hands meanwhile
  const size_t back = count_of(word) + held_blocks(slab);
  return used > back ? used - back : 0;
}

bool has_emptied(const SlabHeader* slab, uint32_t count) {
  const size_t now = count_live(slab), before = now + count;
  size_t few = (slab->capacity < kPages ? slab->capacity : kPages) / 2;
  if (now > few) return false;
  for (; few != 0; few /= 2) {
    if (now <= few && before > few) return true;
  }
  return now == 0;
}

void open_frees(SlabHeader* slab) {
  // acquire: as in gone_pages.
  if (slab->gone.own != 0 || (__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & kGone) != 0) return;
  if (leaving_pages(slab) != 0) return;
  const SizeClass& row = row_of(slab);
  const uint64_t carved = slab->carved * row.step;
  const uint64_t bound = stands_at_multiples(row) ? product_of(row, slab->start) + carved : carved;
  for (unsigned i = 0; i < slab->slots; ++i) set_relaxed(slab[i].free_bound, bound);
}

namespace {

// Memory that an earlier use of the slot left is hidden under the slab, or purged if too much is hidden. The
// first block's pages stay, because it is handed out next.
void see_to_untouched(SlabHeader* slab, bool zeroed) {
  GonePages& gone = slab->gone;
  gone.hides = !zeroed && !slab->partial;
  if (zeroed) gone.touched = 0;
  const size_t memory = gone.hides ? kSlotSize : gone.touched * kSmallPage;
  const auto first = static_cast<unsigned>(base::divide_up(offset_of(slab, 1), kSmallPage));  // pages
  const bool much = memory > first * kSmallPage && !pages::is_behind() && pages::hides_much();
  if (!much || !pages::can_purge_inside(slab)) return;
  const auto behind = static_cast<uint16_t>(UINT16_MAX & ~base::low_mask(first));
  pages::hidden_regret.value.note_purged(pages::purge_inside(slab, behind) / kSmallPage);
  gone.hides = false;
  gone.touched = static_cast<uint8_t>(first);
}

}  // namespace

SlabHeader* create(unsigned size_class, Kind kind) {
  const SizeClass& row = kTable.row[size_class];
  const pages::Span span = pages::allocate_span(row.slots);
  SlabHeader* slab = span.header;
  if (slab == nullptr) return nullptr;
  slab->bin = nullptr;
  slab->free = end_of(slab);
  slab->live = 0;
  set_relaxed(slab->carved, uint16_t{0});
  slab->capacity = row.capacity;
  if (stands_at_multiples(row)) {
    const size_t skip = row.block_size - 1 - (reinterpret_cast<uintptr_t>(slab->start) - 1) % row.block_size;
    slab->start += skip;
    slab->capacity = static_cast<uint16_t>((slab->bytes - skip) / row.block_size);
  }
  close_frees(slab);
  slab->size_class = static_cast<uint8_t>(size_class);
  if (row.slots == 1) {
    see_to_untouched(slab, span.zeroed);
  } else {
    slab->gone.touched = 0;
    slab->gone.hides = true;
  }
  set_relaxed(slab->own_tried, 0u);
  slab->full = slab->listed = slab->purging = false;
  set_relaxed(slab->gone.own, uint16_t{0});
  renew_notify(slab);
  set_relaxed(slab->kind, kind);
  slab->back = 0;
  for (unsigned i = 1; i < row.slots; ++i) {
    slab[i].back = static_cast<uint8_t>(i);
    set_relaxed(slab[i].kind, Kind::interior);
  }
  // Blocks pushed since the last slab ended here had been freed twice.
  check_none_returned(slab);
  return slab;
}

void destroy(SlabHeader* slab) {
  // What its own thread purged was in vain: whoever takes the slots next touches them. Others' frees empty
  // many slabs one after another, and there that would raise the bound for memory that nobody needs.
  if (slab->gone.own != 0)
    note_needed(&pages::ended_regret.value, note_back(slab, count_gone(slab, slab->gone.own)));
  note_change(uncarved(slab), {0, 0});
  slab->partial = slab->slots == 1 && !slab->gone.hides;
  set_owner(slab, kNobody);
  slab->start -= reinterpret_cast<uintptr_t>(slab->start) % kSlotSize;
  set_relaxed(slab->kind, Kind::free);
  set_relaxed(slab->user, static_cast<heap::UserHeap*>(nullptr));  // large blocks may come next
  for (unsigned i = 1; i < slab->slots; ++i) set_relaxed(slab[i].kind, Kind::free);
  pages::release_span(slab);
}

void set_bin(SlabHeader* slab, heap::Bin* bin, Rest* rest) {
  if (slab->free != end_of(slab)) {
    *rest = {slab->free, count_own(slab), 0, Rest::Links::old_bin};
    slab->live = static_cast<uint16_t>(slab->live + rest->count);
  }
  for (unsigned i = 0; i < slab->slots; ++i) slab[i].bin = bin;
  slab->free = bin;
}

namespace {

// Pages that are gone, with blocks that others freed, become the slab's own again.
void take_gone_pages(SlabHeader* slab, uint16_t pages, uint32_t count) {
  set_relaxed(slab->gone.own, static_cast<uint16_t>(slab->gone.own | pages));
  slab->live = static_cast<uint16_t>(slab->live - count);
  close_frees(slab);
}

// Takes what other threads freed. The count is 0 if all of it was in pages that are gone.
Rest take_returned(SlabHeader* slab) {
  const Returned returned = take_remote(slab);
  const uint32_t gone = returned.gone == 0 ? 0 : count_gone(slab, returned.gone);
  if (returned.count > slab->live) corrupted(slab, "a block was freed twice, by different threads");
  if (gone != 0) take_gone_pages(slab, returned.gone, gone);
  return {returned.chain, returned.count - gone, 0, Rest::Links::remote};
}

// Cuts `most` blocks off a list of so many or more, as a bin's list. Only the last link changes, and each
// block is checked when it is handed out.
void* cut(SlabHeader* slab, void** list, uint32_t most) {
  void* first = *list;
  void* last = first;
  void* next = next_free(slab, first);
  for (uint32_t left = most - 1; left != 0 && next != kNoLink; --left) {
    last = next;
    next = next_free(slab, last);
  }
  if (__builtin_expect(next == kNoLink, false)) corrupted(slab, kBroken);
  *list = next;
  link_free(slab, last, end_of(slab));
  return first;
}

// For what other threads freed: checks each block and makes its link anew.
void* relink(SlabHeader* slab, Rest* rest, uint32_t most, const void* then) {
  const bool tiny = is_tiny(slab);
  void* const first = rest->first;
  void* block = first;
  for (uint32_t left = most; left != 0; --left) {
    check_free(slab, block);
    void* next = tiny ? next_remote_free(slab, block) : next_remote(block);
    if (next == kNoLink)
      corrupted(slab,
                "a block was freed by two threads at once, or written to, after it was freed or past the end "
                "of another");
    const void* link = left == 1 ? then : next;
    tiny ? link_tiny(slab, block, link) : set_next(block, link);
    block = next;
  }
  rest->first = block;
  rest->count -= most;
  if (rest->count == 0 && block != nullptr) corrupted(slab, kBroken);
  return first;
}

}  // namespace

namespace {

uint32_t taken_at_once(const SlabHeader* slab, uint32_t count) {
  const uint32_t together = row_of(slab).taken;
  return together < count ? together : count;
}

}  // namespace

List take_own(SlabHeader* slab) {
  if (slab->free == end_of(slab)) return {nullptr, 0};
  const uint32_t all = count_own(slab), some = taken_at_once(slab, all);
  const uint32_t most = all <= 2 * some ? all : some;  // a cut walks, and each line may be out of the caches
  slab->live = static_cast<uint16_t>(slab->live + most);
  if (most != all) return {cut(slab, &slab->free, most), most};
  const List list = {slab->free, most};
  slab->free = end_of(slab);
  return list;
}

bool gather(SlabHeader* slab, Rest* rest) {
  if (returned_count(slab) != 0) *rest = take_returned(slab);
  return rest->count != 0;
}

uint32_t make_ready(const SlabHeader* slab, Rest* rest) {
  if (rest->links != Rest::Links::remote || is_tiny(slab)) return 0;
  rest->ready = static_cast<uint16_t>(taken_at_once(slab, rest->count));
  return rest->ready;
}

List take_some(SlabHeader* slab, Rest* rest) {
  const uint32_t most = taken_at_once(slab, rest->count);
  rest->ready = 0;
  if (rest->links == Rest::Links::remote) return {relink(slab, rest, most, end_of(slab)), most};
  rest->count -= most;
  return {cut(slab, &rest->first, most), most};
}

List take_fresh(SlabHeader* slab, bool many) {
  if (slab->gone.own != 0) return slab->purging ? List{nullptr, 0} : take_gone(slab);
  return slab->carved < slab->capacity ? carve(slab, many) : List{nullptr, 0};
}

bool take_remote(SlabHeader* slab, uint64_t left, uint32_t least, Returned* returned) {
  // acquire: pairs with the release of push_remote, so that we see links and gone.remote. A thread that
  // changes gone.remote takes the word first and leaves a different one: with the same count kTurn differs.
  // It changes once for each count, as a rule, and has four values.
  uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  uint16_t gone;
  do {
    if (count_of(word) < least) return false;
    gone = (word & kGone) != 0 ? __atomic_load_n(&slab->gone.remote, __ATOMIC_RELAXED) : uint16_t{0};
    // release: a thread that takes a slab over has written its owner.
  } while (!__atomic_compare_exchange_n(&slab->remote, &word, word & left, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  set_relaxed(slab->gone.seen, uint16_t{0});
  note_taken(slab, count_of(word) - (gone == 0 ? 0 : count_gone(slab, gone)));
  *returned = {chain_of(word), count_of(word), gone};
  return true;
}

uint32_t count_own(const SlabHeader* slab) {
  return slab->carved - count_gone(slab, slab->gone.own) - slab->live;
}

uint32_t drain(SlabHeader* slab) {
  Rest rest = take_returned(slab);
  const uint32_t count = rest.count;
  if (count == 0) return 0;
  slab->free = relink(slab, &rest, count, slab->free);
  slab->live = static_cast<uint16_t>(slab->live - count);
  return count;
}

// A block that its owner freed at the same time, and has handed out again, counts as returned, too. Where few
// blocks came back, one of them may make the count that ends the slab. A longer chain is not walked: each of
// its lines is out of the caches.
constexpr uint32_t kMostChecked = 8;

void check_empty(SlabHeader* slab, const Returned& returned) {
  if (slab->live != returned.count) corrupted(slab, "a block was freed twice");
  set_relaxed(slab->gone.own, static_cast<uint16_t>(slab->gone.own | returned.gone));
  const uint32_t gone = returned.gone == 0 ? 0 : count_gone(slab, returned.gone);
  Rest rest = {returned.chain, returned.count - gone, 0, Rest::Links::remote};
  if (rest.count != 0 && rest.count <= kMostChecked) relink(slab, &rest, rest.count, end_of(slab));
}

}  // namespace hummock::slab
