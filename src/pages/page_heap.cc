// The page heap: spans of up to 32 MiB from regions, huge-page aware: a span comes from the huge page
// with the shortest free run that is long enough, so whole huge pages stay free and can go back.
#include "os/os.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/room.h"
#include "pages/span_cache.h"

namespace hummock::pages {

os::Lock<os::Rank::page_heap> page_lock;
Region* regions;
PurgeQueue purge_queue;
size_t used_slots;
size_t peak_bytes;
size_t mapped_bytes;
size_t kept_slots;
size_t huge_bytes;
uint32_t dirty_slots;

namespace {

using FreeList = base::List<HugePage, &HugePage::next, &HugePage::prev>;

FreeList free_lists[kSlotsPerHugePage + 1];  // by longest free run; 0 unused
uint64_t nonempty;                           // bit i: free_lists[i] has a member

void list(HugePage* page) {
  page->run = static_cast<uint8_t>(base::longest_run(~page->used));
  page->region->longest = kSlotsPerRegion;  // until somebody looks
  const uint32_t bit = 1u << page->number;
  page->region->whole_free = (page->region->whole_free & ~bit) | (page->used == 0 ? bit : 0);
  if (page->run == 0) return;
  if (page->warm() != 0) {
    free_lists[page->run].push_front(page);  // memory that is there already is used first
  } else {
    free_lists[page->run].push_back(page);
  }
  nonempty |= uint64_t{1} << page->run;
}

// Written under the lock, read without.
void add_dirty(int32_t slots) {
  __atomic_store_n(&dirty_slots, dirty_slots + static_cast<uint32_t>(slots), __ATOMIC_RELAXED);
}

void note_peak() {
  const size_t used = used_slots + huge_bytes / kSlotSize;
  if (used > high_used) set_relaxed(high_used, used);
  const size_t now = (used_slots + dirty_slots + kept_slots) * kSlotSize + huge_bytes;
  if (now > peak_bytes) peak_bytes = now;
}

void count_taken(unsigned slots) {
  __atomic_store_n(&used_slots, used_slots + slots, __ATOMIC_RELAXED);
  note_peak();
}

// What is given stays as dirty, so the peak is no higher.
void count_given(unsigned slots) {
  __atomic_store_n(&used_slots, used_slots - slots, __ATOMIC_RELAXED);
}

// The first touch of a huge page brings memory for all of it.
void take_huge(HugePage* page, uint32_t mask, unsigned slots) {
  unlist(page);
  discount(page);
  const unsigned clean = slots - base::count_in(page->dirty, mask, slots);
  count_clean(clean);
  page->unread = (page->unread | ~page->dirty) & ~mask;
  page->dirty = ~uint32_t{0};
  page->used |= mask;
  count(page);
  count_taken(slots);
  refile(page);
}

void give_huge(HugePage* page, uint32_t mask, unsigned slots) {
  unlist(page);
  discount(page);
  page->used &= ~mask;
  count(page);
  count_given(slots);
  refile(page);
}

// Marks slots used or free. `mask` has `slots` bits and lies in one huge page.
void take(HugePage* page, uint32_t mask, unsigned slots) {
  if (page->backing != Backing::small) return take_huge(page, mask, slots);
  unlist(page);
  const unsigned dirty = base::count_in(page->dirty, mask, slots);
  add_dirty(-static_cast<int32_t>(dirty));
  count_clean(slots - dirty);
  page->used |= mask;
  page->dirty |= mask;
  count_taken(slots);
  refile(page);
}

void give(HugePage* page, uint32_t mask, unsigned slots) {
  if (page->backing != Backing::small) return give_huge(page, mask, slots);
  unlist(page);
  page->used &= ~mask;
  add_dirty(static_cast<int32_t>(slots));
  count_given(slots);
  refile(page);
}

// The part of slots [first, first + slots) of the region that lies in huge page `number`.
uint32_t part_mask(unsigned number, unsigned first, unsigned slots) {
  const unsigned begin = number * kSlotsPerHugePage;
  const unsigned from = first > begin ? first - begin : 0;
  const unsigned end = first + slots - begin;
  const unsigned to = end < kSlotsPerHugePage ? end : kSlotsPerHugePage;
  return base::low_mask(to) & ~base::low_mask(from);
}

// Calls change(page, mask, slots) for each huge page that the slots touch.
template <class Change>
void for_parts(Region* region, unsigned first, unsigned slots, Change change) {
  const unsigned number = first / kSlotsPerHugePage;
  const unsigned last = (first + slots - 1) / kSlotsPerHugePage;
  if (number == last) {
    change(&region->page[number], base::low_mask(slots) << (first % kSlotsPerHugePage), slots);
    return;
  }
  for (unsigned n = number; n <= last; ++n) {
    const uint32_t mask = part_mask(n, first, slots);
    change(&region->page[n], mask, static_cast<unsigned>(__builtin_popcount(mask)));
  }
}

Span make_span(Region* region, unsigned first, unsigned slots) {
  bool zeroed = true;
  for_parts(region, first, slots, [&](HugePage* page, uint32_t mask, unsigned count) {
    zeroed = zeroed && (page->dirty & ~page->unread & mask) == 0;
    take(page, mask, count);
  });
  SlabHeader* header = region->header(first);
  header->start = region->base + first * kSlotSize;
  header->slots = static_cast<uint16_t>(slots);
  header->bytes = slots * kSlotSize;
  return {header, zeroed};
}

// Bits 0, align, 2 × align, …; align is a power of two.
constexpr uint32_t aligned_positions(unsigned align) {
  constexpr uint32_t kEach[] = {0xffffffff, 0x55555555, 0x11111111, 0x01010101, 0x00010001, 0x00000001};
  return kEach[__builtin_ctz(align)];
}

// First slot of a free run in one huge page, preferring slots with memory; -1 if none is aligned so.
int find_in_page(const HugePage* page, unsigned slots, unsigned align) {
  const uint32_t aligned = aligned_positions(align);
  const uint32_t warm = base::runs_of(page->warm(), slots) & aligned;
  if (warm != 0) return __builtin_ctz(warm);
  const uint32_t any = base::runs_of(~page->used, slots) & aligned;
  return any != 0 ? __builtin_ctz(any) : -1;
}

Span take_from_list(unsigned least_run, unsigned slots, unsigned align) {
  const uint64_t lists = nonempty >> least_run;
  if (lists == 0) return {nullptr, false};
  const HugePage* page = free_lists[least_run + static_cast<unsigned>(__builtin_ctzll(lists))].front();
  const int at = find_in_page(page, slots, align);
  if (at < 0) return {nullptr, false};
  return make_span(page->region, page->number * kSlotsPerHugePage + static_cast<unsigned>(at), slots);
}

Span take_in_page(unsigned slots, unsigned align) {
  // With alignment the shortest run may have no aligned place; a run of slots + align - 1 always has.
  const unsigned sure = slots + align - 1 < kSlotsPerHugePage ? slots + align - 1 : kSlotsPerHugePage;
  const Span span = take_from_list(slots, slots, align);
  return span.header != nullptr || sure == slots ? span : take_from_list(sure, slots, align);
}

// Above 2 MiB: whole huge pages in a row, the last perhaps in part. One step a region, and there are
// few: each holds at least one such block or the search would have ended there.
Span take_row(unsigned slots, unsigned align) {
  const unsigned row = static_cast<unsigned>(base::divide_up(slots, kSlotsPerHugePage));
  const unsigned step = align > kSlotsPerHugePage ? align / kSlotsPerHugePage : 1;
  for (Region* region = regions; region != nullptr; region = region->next) {
    uint32_t places = base::runs_of(region->whole_free, row);
    if (step > 1) places &= aligned_positions(step);
    if (places != 0) {
      return make_span(region, static_cast<unsigned>(__builtin_ctz(places)) * kSlotsPerHugePage, slots);
    }
  }
  return {nullptr, false};
}

Span take_span(unsigned slots, unsigned align) {
  if (slots <= kSlotsPerHugePage && align <= kSlotsPerHugePage) return take_in_page(slots, align);
  if (align > 1) return take_row(slots, align);
  const Room room = find_room(slots);
  return room.region == nullptr ? Span{nullptr, false} : make_span(room.region, room.first, slots);
}

// Slots that have no memory.
void give_clean(HugePage* page, uint32_t mask, unsigned slots) {
  make_small(page);
  give(page, mask, slots);
  unlist(page);
  discount(page);
  page->dirty &= ~mask;
  page->unread &= page->dirty;
  page->collapsed = false;
  count(page);
  refile(page);
}

// Slots that no memory could be had for: free, and clean, as whatever they had is given back.
void give_bare(Region* region, unsigned first, unsigned slots) {
  os::purge(region->base + first * kSlotSize, slots * kSlotSize);
  os::LockGuard guard(page_lock);
  for_parts(region, first, slots, give_clean);
}

// Where memory must be asked for: sees that the slots have some, or gives them back. No lock is held.
bool have_memory(Region* region, unsigned first, unsigned slots) {
  if (!os::kMustCommit || region->page[0].backing != Backing::small) return true;
  if (os::commit(region->base + first * kSlotSize, slots * kSlotSize)) return true;
  give_bare(region, first, slots);
  return false;
}

}  // namespace

void unlist(HugePage* page) {
  if (page->run == 0) return;
  free_lists[page->run].remove(page);
  if (free_lists[page->run].empty()) nonempty &= ~(uint64_t{1} << page->run);
}

void refile(HugePage* page) {
  list(page);
  const bool due = page->purgeable() != 0;
  if (due == page->queued) return;
  page->queued = due;
  if (due) {
    page->since = kNow;
    purge_queue.push_back(page);
  } else {
    purge_queue.remove(page);
  }
}

void discount(const HugePage* page) {
  const uint32_t purgeable = page->purgeable();
  add_dirty(-__builtin_popcount(purgeable));
  kept_slots -= static_cast<size_t>(__builtin_popcount(page->warm() & ~purgeable));
}

void count(const HugePage* page) {
  const uint32_t purgeable = page->purgeable();
  add_dirty(__builtin_popcount(purgeable));
  kept_slots += static_cast<size_t>(__builtin_popcount(page->warm() & ~purgeable));
}

void set_backing(HugePage* page, Backing backing) {
  unlist(page);
  discount(page);
  set_relaxed(page->backing, backing);
  count(page);
  refile(page);
}

Span allocate_span(unsigned slots, unsigned align_slots) {
  if (align_slots == 1) {
    if (SlabHeader* header = take_cached(slots)) return {header, false};
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    page_lock.lock();
    const Span span = take_span(slots, align_slots);
    page_lock.unlock();
    if (span.header != nullptr) {
      if (os::kMustCommit && !have_memory(region_of(span.header), slot_of(span.header), slots)) break;
      return span;
    }
    // A region that another thread used up meanwhile, or a small one without the alignment: once more.
    if (!grow(slots + align_slots - 1)) break;
  }
  return {nullptr, false};
}

void release_span(SlabHeader* header) {
  __atomic_store_n(&header->owner, kNobody, __ATOMIC_RELAXED);
  header->kind = Kind::free;
  header = keep_cached(header);
  if (header == nullptr) return;
  give_span(header);
  if (dirty_over_budget()) tick(os::now_ms());
}

void give_span(SlabHeader* header) {
  os::LockGuard guard(page_lock);
  Region* region = region_of(header);
  if (header->slots > kSlotsPerHugePage) last_given = region;
  for_parts(region, slot_of(header), header->slots, give);
}

void give_lifted(SlabHeader* header) {
  __atomic_store_n(&header->owner, kNobody, __ATOMIC_RELAXED);
  header->kind = Kind::free;
  os::LockGuard guard(page_lock);
  for_parts(region_of(header), slot_of(header), header->slots, give_clean);
}

bool may_lift(SlabHeader* header) {
  os::LockGuard guard(page_lock);
  bool may = true;
  for_parts(region_of(header), slot_of(header), header->slots, [&](const HugePage* page, uint32_t, unsigned) {
    may = may && page->backing != Backing::pinned && page->backing != Backing::kept;
  });
  return may;
}

void shrink_span(SlabHeader* header, unsigned slots) {
  os::LockGuard guard(page_lock);
  for_parts(region_of(header), slot_of(header) + slots, header->slots - slots, give);
  header->slots = static_cast<uint16_t>(slots);
  header->bytes = slots * kSlotSize;
}

bool grow_span(SlabHeader* header, unsigned slots) {
  Region* region = region_of(header);
  const unsigned end = slot_of(header) + header->slots;
  const unsigned more = slots - header->slots;
  if (end + more > region->huge_pages * kSlotsPerHugePage) return false;
  {
    os::LockGuard guard(page_lock);
    bool free = true;
    for_parts(region, end, more,
              [&](HugePage* page, uint32_t mask, unsigned) { free = free && (page->used & mask) == 0; });
    if (!free) return false;
    for_parts(region, end, more, take);
  }
  if (!have_memory(region, end, more)) return false;
  header->slots = static_cast<uint16_t>(slots);
  header->bytes = slots * kSlotSize;
  return true;
}

void note_huge_bytes(size_t bytes, int32_t dirty) {
  os::LockGuard guard(page_lock);
  set_relaxed(huge_bytes, bytes);
  add_dirty(dirty);
  note_peak();
}

void lock_all() {
  huge_lock();
  page_lock.lock_for_fork();
  metadata_lock();
  before_fork();
}

void unlock_all() {
  after_fork_in_parent();
  metadata_unlock();
  page_lock.unlock_after_fork();
  huge_unlock();
}

void reset_all() {
  after_fork_in_child();
  metadata_reset();
  page_lock.unlock_in_child();
  huge_reset();
}

}  // namespace hummock::pages
