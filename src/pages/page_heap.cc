// The page heap: spans of up to 32 MiB from runs of free slots of regions.
#include "os/os.h"
#include "pages/backing.h"
#include "pages/limits.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/runs.h"
#include "pages/span_cache.h"

namespace hummock::pages {

os::Lock<os::Rank::growth> growth_lock;
alignas(64) os::Lock<os::Rank::page_heap> page_lock;
Region* regions;
PurgeQueue purge_queue;
size_t used_slots;
size_t peak_bytes;
size_t mapped_bytes;
size_t kept_slots;
size_t huge_bytes;
uint32_t dirty_slots;
size_t reused_slots;
size_t fresh_slots;

namespace {

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

constexpr size_t kSlotsToTell = (1 << 20) / kSlotSize;
size_t told_slots;  // in use when it was last told. Guarded by page_lock.

// Looks at what slabs have never handed out only then, because others write to its line.
void tell_use_of_spans() {
  const size_t apart = used_slots > told_slots ? used_slots - told_slots : told_slots - used_slots;
  if (apart >= kSlotsToTell && apart > told_slots / 64) tell_use();
}

void count_taken(unsigned slots) {
  __atomic_store_n(&used_slots, used_slots + slots, __ATOMIC_RELAXED);
  note_peak();
  tell_use_of_spans();
}

// The memory stays as dirty as it was, so the peak is no higher.
void count_given(unsigned slots) {
  __atomic_store_n(&used_slots, used_slots - slots, __ATOMIC_RELAXED);
  tell_use_of_spans();
}

// The first touch of a huge page brings memory for all of it.
void take_huge(HugePage* page, uint32_t mask) {
  discount(page);
  page->unread = (page->unread | ~page->dirty) & ~mask;
  page->dirty = ~uint32_t{0};
  page->partial = 0;
  page->used |= mask;
  count(page);
  refile(page);
}

// Marks slots used or free. `mask` has `slots` bits. How many had no memory.
unsigned take(HugePage* page, uint32_t mask, unsigned slots) {
  const unsigned dirty = base::count_in(page->dirty, mask, slots);
  if (page->backing != Backing::small) return take_huge(page, mask), slots - dirty;
  add_dirty(-static_cast<int32_t>(dirty));
  page->used |= mask;
  page->dirty |= mask;
  page->unread &= ~mask;  // it may have been huge before
  page->partial &= ~mask;
  refile(page);
  return slots - dirty;
}

void give(HugePage* page, uint32_t mask, unsigned slots) {
  const bool small = page->backing == Backing::small;
  if (!small) discount(page);
  page->used &= ~mask;
  small ? add_dirty(static_cast<int32_t>(slots)) : count(page);
  refile(page);
}

void give_partial(HugePage* page, uint32_t mask, unsigned slots) {
  give(page, mask, slots);
  if (page->backing == Backing::small) page->partial |= mask;
}

// Slots that have no memory.
void give_clean(HugePage* page, uint32_t mask, unsigned) {
  make_small(page);
  discount(page);
  page->used &= ~mask;
  page->dirty &= ~mask;
  page->unread &= page->dirty;
  page->collapsed = false;
  count(page);
  refile(page);
}

// True: they read zero.
bool take_slots(SlabHeader* run, unsigned first, unsigned slots) {
  bool zeroed = true;
  unsigned clean = 0;
  for_parts(region_of(run), first, slots, [&](HugePage* page, uint32_t mask, unsigned part) {
    zeroed = zeroed && (page->dirty & ~page->unread & mask) == 0;
    clean += take(page, mask, part);
  });
  if (clean != 0) slot_regret.value.note_needed(clean * kSlotSize / kSmallPage);
  set_relaxed(fresh_slots, fresh_slots + clean);
  reused_slots += slots - clean;
  count_taken(slots);
  cut_run(run, first, slots);
  return zeroed;
}

template <class Give>
void give_slots(Region* region, unsigned first, unsigned slots, Give how) {
  for_parts(region, first, slots, how);
  count_given(slots);
  join_run(region, first, slots);
}

Span take_span(unsigned slots, unsigned align) {
  const Place place = find_place(slots, align);
  if (place.run == nullptr) return {nullptr, false};
  Region* region = region_of(place.run);
  SlabHeader* header = region->header(place.first);
  header->partial = slots == 1 && is_partial(region, place.first);
  const bool zeroed = take_slots(place.run, place.first, slots);
  header->start = region->base + place.first * kSlotSize;
  header->slots = static_cast<uint16_t>(slots);
  header->bytes = slots * kSlotSize;
  return {header, zeroed};
}

// Slots that no memory could be had for: free, and clean, as whatever they had is given back.
void give_bare(Region* region, unsigned first, unsigned slots) {
  os::purge(region->base + first * kSlotSize, slots * kSlotSize);
  os::LockGuard guard(page_lock);
  give_slots(region, first, slots, give_clean);
}

// Where memory must be asked for: sees that the slots have some, or gives them back. No lock is held.
bool have_memory(Region* region, unsigned first, unsigned slots) {
  if (!os::kMustCommit || region->page[0].backing != Backing::small) return true;
  if (os::commit(region->base + first * kSlotSize, slots * kSlotSize)) return true;
  give_bare(region, first, slots);
  return false;
}

}  // namespace

void tell_use() {
  told_slots = used_slots;
  set_relaxed(in_use_lately.value, in_use_bytes());
}

void requeue(HugePage* page) {
  page->queued = !page->queued;
  if (page->queued) {
    if (purge_queue.empty()) set_relaxed(tick_time, os::now_ms());  // ticks begin again
    page->since = relaxed(tick_time);
    purge_queue.push_back(page);
  } else {
    purge_queue.remove(page);
  }
}

void discount(const HugePage* page) {
  const uint32_t purgeable = page->purgeable();
  add_dirty(-static_cast<int32_t>(base::count_bits(purgeable)));
  kept_slots -= base::count_bits(page->warm() & ~purgeable);
}

void count(const HugePage* page) {
  const uint32_t purgeable = page->purgeable();
  add_dirty(static_cast<int32_t>(base::count_bits(purgeable)));
  kept_slots += base::count_bits(page->warm() & ~purgeable);
}

void set_backing(HugePage* page, Backing backing) {
  discount(page);
  set_relaxed(page->backing, backing);
  count(page);
  refile(page);
}

namespace {

Span take_locked(unsigned slots, unsigned align) {
  os::LockGuard guard(page_lock);
  return may_still_take(slots * kSlotSize) ? take_span(slots, align) : Span{nullptr, false};
}

// One thread adds a region, and the others wait and look again. Otherwise each of many threads that start at
// once would add one.
Span take_grown(unsigned slots, unsigned align) {
  os::LockGuard guard(growth_lock);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Span span = take_locked(slots, align);
    // A region that others used up meanwhile, or a small one without the alignment: once more.
    if (span.header != nullptr || !may_still_take(slots * kSlotSize) || !grow(slots + align - 1)) return span;
  }
  return take_locked(slots, align);
}

}  // namespace

Span allocate_span(unsigned slots, unsigned align_slots) {
  if (align_slots == 1) {
    if (SlabHeader* header = take_far(slots)) return {header, false};
  }
  if (!may_take(slots * kSlotSize)) return {nullptr, false};
  Span span = take_locked(slots, align_slots);
  if (span.header == nullptr && may_take(slots * kSlotSize)) span = take_grown(slots, align_slots);
  const bool bare = os::kMustCommit && span.header != nullptr &&
                    !have_memory(region_of(span.header), slot_of(span.header), slots);
  return bare ? Span{nullptr, false} : span;
}

void release_span(SlabHeader* header) {
  __atomic_store_n(&header->owner, kNobody, __ATOMIC_RELAXED);
  set_relaxed(header->kind, Kind::free);
  unsigned given = 0, length = 0;
  const SlabHeader* longest = nullptr;
  const auto give_back = [&](SlabHeader* span) {
    if (span == nullptr) return;
    given += span->slots;
    if (span->slots > length) longest = span, length = span->slots;
    give_span(span);
  };
  SlabHeader* other = keep_far(header);  // itself, where it was refused
  give_back(other);
  give_back(take_excess(other == header));
  if (given != 0 && dirty_over_budget()) purge_excess(given, longest, length);
}

void give_span(SlabHeader* header) {
  os::LockGuard guard(page_lock);
  give_slots(region_of(header), slot_of(header), header->slots, header->partial ? give_partial : give);
}

void give_lifted(SlabHeader* header) {
  __atomic_store_n(&header->owner, kNobody, __ATOMIC_RELAXED);
  set_relaxed(header->kind, Kind::free);
  os::LockGuard guard(page_lock);
  give_slots(region_of(header), slot_of(header), header->slots, give_clean);
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
  give_slots(region_of(header), slot_of(header) + slots, header->slots - slots, give);
  header->slots = static_cast<uint16_t>(slots);
  header->bytes = slots * kSlotSize;
}

bool grow_span(SlabHeader* header, unsigned slots) {
  Region* region = region_of(header);
  const unsigned end = slot_of(header) + header->slots;
  const unsigned more = slots - header->slots;
  if (end + more > region->huge_pages * kSlotsPerHugePage || !may_take(more * kSlotSize)) return false;
  {
    os::LockGuard guard(page_lock);
    SlabHeader* run = region->header(end);
    if (!is_free(region, end) || run->slots < more || !may_still_take(more * kSlotSize)) return false;
    take_slots(run, end, more);
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
  tell_use();
}

namespace {

void before_fork(os::ForkStep step) {
  growth_lock.at_fork(step);
  huge_at_fork(step);
  page_lock.at_fork(step);
  metadata_at_fork(step);
  reserve_at_fork(step);
}

void after_fork(os::ForkStep step) {
  reserve_at_fork(step);
  if (step == os::ForkStep::in_child) {
    forget_renewal();
    end_purging_in_child();
  }
  metadata_at_fork(step);
  page_lock.at_fork(step);
  huge_at_fork(step);
  growth_lock.at_fork(step);
}

}  // namespace

void at_fork(os::ForkStep step) {
  step == os::ForkStep::before ? before_fork(step) : after_fork(step);
}

}  // namespace hummock::pages
