// Giving free memory back: what has been free for half the decay time or longer goes on a tick, so that
// all is gone after the decay time; what exceeds the budget goes at once, oldest first.
//
// The system call is made without the lock: the slots are marked used meanwhile, so nobody takes them.
#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/span_cache.h"

namespace hummock::pages {

size_t purged_slots;
size_t high_used;

namespace {

constexpr uint64_t kTickMs = 10;  // ticks closer together than this do nothing
constexpr size_t kLeastBudget = 8 << 20;
constexpr size_t kMostRegret = 32 << 20;  // beyond what was in use lately
constexpr uint64_t kForEver = ~uint64_t{0};

uint64_t last_tick;   // ms; atomic, relaxed: two threads ticking at once is harmless
uint64_t last_flush;  // of the span cache; likewise
// A program that frees and allocates in turns would have the same memory given back and touched afresh
// each time: slots that were given back for being over the budget and were needed again raise the budget.
// Both are halved as time passes, as high_used is. Guarded by page_lock.
uint32_t excess_purged;  // slots given back for being over the budget, and not needed since
uint32_t regretted;  // slots of those that were needed again. Written under page_lock, read without: a hint
uint64_t regret_halved;  // ms

uint64_t refused_until;  // guarded by page_lock: after a refusal, do not ask again on every free

size_t regret() {
  const size_t slots = relaxed(regretted);
  const size_t most = relaxed(high_used) + kMostRegret / kSlotSize;
  return slots < most ? slots : most;
}

// Called with page_lock held.
void halve_regret(uint64_t now, uint64_t period) {
  if (now - regret_halved < period) return;
  regret_halved = now;
  excess_purged /= 2;
  set_relaxed(regretted, regretted / 2);
  const size_t used = used_slots + relaxed(huge_bytes) / kSlotSize;
  set_relaxed(high_used, high_used / 2 > used ? high_used / 2 : used);
}

size_t budget_slots() {
  const size_t limit = options::values.dirty_max;
  if (limit != 0) return limit / kSlotSize;
  const size_t used = relaxed(used_slots) + relaxed(huge_bytes) / kSlotSize;
  const size_t least = kLeastBudget / kSlotSize;
  return (used / 2 > least ? used / 2 : least) + regret();
}

// Purges the runs of `mask`, a bit for `unit` bytes each; the bits of what the system refused.
uint32_t purge_runs(char* base, size_t unit, uint32_t mask) {
  uint32_t failed = 0;
  while (mask != 0) {
    const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
    const uint32_t from = ~(mask >> first);
    const unsigned length = from == 0 ? kSlotsPerHugePage : static_cast<unsigned>(__builtin_ctz(from));
    const uint32_t run = base::low_mask(length) << first;
    if (!os::purge(base + first * unit, length * unit)) failed |= run;
    mask &= ~run;
  }
  return failed;
}

// Free slots of the mask look used: nobody takes them, nobody purges them.
void hide(HugePage* page, uint32_t mask) {
  unlist(page);
  discount(page);
  ++page->busy;
  page->used |= mask;
  count(page);
  refile(page);
}

// Gives back the free slots of one queued huge page. Called with page_lock held, which is dropped
// meanwhile; `*given` counts them. False when the system refused. Other slots of it may become free
// meanwhile, and another thread purge those: so a loose one is small before.
bool purge_page(HugePage* page, size_t* given) {
  const uint32_t mask = page->purgeable();
  make_small(page);
  hide(page, mask);
  page_lock.unlock();
  const uint32_t failed = purge_runs(page->start(), kSlotSize, mask);
  page_lock.lock();
  const uint32_t gone = mask & ~failed;
  unlist(page);
  discount(page);
  --page->busy;
  page->collapsed = false;
  page->used &= ~mask;
  page->dirty &= ~gone;
  page->unread &= page->dirty;
  count(page);
  refile(page);
  const size_t slots = static_cast<size_t>(__builtin_popcount(gone));
  purged_slots += slots;
  *given += slots;
  return failed == 0;
}

// A huge page that was set aside for us and is wholly free goes back to where it came from. As purge_page.
bool give_pinned(HugePage* page) {
  hide(page, ~uint32_t{0});
  page_lock.unlock();
  const bool gone = os::replace_by_small(page->start(), kHugePageSize);
  const bool advised = gone && os::advise_huge(page->start(), kHugePageSize, true) == 0;
  page_lock.lock();
  unlist(page);
  discount(page);
  --page->busy;
  page->used = 0;
  if (gone) {
    page->dirty = page->unread = 0;
    page->collapsed = false;
    set_relaxed(page->backing, advised ? Backing::whole : Backing::small);
    __atomic_fetch_sub(&pinned_bytes, kHugePageSize, __ATOMIC_RELAXED);
    if (advised) __atomic_fetch_add(&advised_bytes, kHugePageSize, __ATOMIC_RELAXED);
    purged_slots += kSlotsPerHugePage;
  }
  count(page);
  refile(page);
  return gone;
}

bool give_all_pinned() {
  if (relaxed(pinned_bytes) == 0) return false;
  os::Event event;
  size_t given = 0;
  Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE);
  for (; region != nullptr; region = region->next) {
    os::LockGuard guard(page_lock);  // for one at a time: malloc waits for it
    for (unsigned i = 0; i < region->huge_pages; ++i) {
      HugePage* page = &region->page[i];
      if (page->backing == Backing::pinned && page->used == 0) given += give_pinned(page);
    }
  }
  if (given != 0) event.log("Purge", nullptr, given * kHugePageSize, 0, "large pages that were set aside");
  return given != 0;
}

// Pages that entered since the last tick get its time: no clock is read when a span is freed.
void stamp(uint64_t now) {
  for (HugePage* page = purge_queue.back(); page != nullptr && page->since == kNow; page = page->purge_prev) {
    page->since = now;
  }
}

// Purges the queue's oldest as long as they entered before `before` or more than `keep` slots are dirty.
// How many slots went, and where the first huge page was.
size_t purge_queued(uint64_t before, size_t keep, uint64_t now, const void** first) {
  size_t given = 0;
  os::LockGuard guard(page_lock);
  stamp(now);
  halve_regret(now, static_cast<uint64_t>(options::values.decay_ms));
  if (now < refused_until && before != kForEver) return 0;
  while (HugePage* page = purge_queue.front()) {
    if (page->since > before) {
      if (dirty_slots <= keep) break;
      excess_purged += static_cast<uint32_t>(__builtin_popcount(page->purgeable()));
    }
    if (given == 0) *first = page->start();
    if (!purge_page(page, &given)) {
      refused_until = now + 100;
      break;
    }
  }
  return given;
}

bool purge_while(uint64_t before, size_t keep, uint64_t now) {
  const bool dropped = drop_kept(before, keep, now) != 0;
  os::Event event;
  const void* first = nullptr;
  const size_t slots = purge_queued(before, keep, now, &first);
  if (slots != 0) event.log("Purge", first, slots * kSlotSize, 0);
  return slots != 0 || dropped;
}

void flush_cache() {
  for (unsigned i = 0; i < kCachePositions; ++i) {
    if (SlabHeader* header = empty_cache(i)) give_span(header);
  }
  for (unsigned cache = 0; cache < kNearCaches; ++cache) {
    for (unsigned slots = 1; slots <= kNearLengths; ++slots) {
      if (SlabHeader* header = take_near(cache, slots)) give_span(header);
    }
  }
}

}  // namespace

void note_excess(uint32_t slots) {
  os::LockGuard guard(page_lock);
  excess_purged += slots;
}

void count_clean(uint32_t slots) {
  const uint32_t again = slots < excess_purged ? slots : excess_purged;
  if (again == 0) return;
  excess_purged -= again;
  set_relaxed(regretted, regretted + again);
}

void note_clean(uint32_t slots) {
  os::LockGuard guard(page_lock);
  count_clean(slots);
}

bool dirty_over_budget() {
  if (options::values.decay_ms == 0) return true;
  const size_t dirty = __atomic_load_n(&dirty_slots, __ATOMIC_RELAXED);
  if (dirty <= kLeastBudget / kSlotSize && options::values.dirty_max == 0) return false;  // most often
  return dirty > budget_slots();
}

namespace {

__attribute__((noinline)) void give_what_is_due(uint64_t now, uint64_t decay) {
  __atomic_store_n(&last_tick, now, __ATOMIC_RELAXED);
  if (now - __atomic_load_n(&last_flush, __ATOMIC_RELAXED) > decay / 4) {
    __atomic_store_n(&last_flush, now, __ATOMIC_RELAXED);
    flush_cache();
  }
  purge_while(now > decay / 2 ? now - decay / 2 : 0, budget_slots(), now);
  collapse_one();
}

}  // namespace

bool tick(uint64_t now) {
  const int64_t decay = options::values.decay_ms;
  if (decay < 0) return false;
  const bool due = now - __atomic_load_n(&last_tick, __ATOMIC_RELAXED) >= kTickMs || dirty_over_budget();
  if (due) give_what_is_due(now, static_cast<uint64_t>(decay));
  return due;
}

// No lock: it may be advised huge the moment after in any case, and then purging costs a huge page, no more.
bool can_purge_inside(const SlabHeader* header) {
  if (os::kMustCommit || os::page_size() != kSmallPage) return false;
  const HugePage& page = region_of(header)->page[slot_of(header) / kSlotsPerHugePage];
  return relaxed(page.backing) == Backing::small;
}

bool split_huge_page(const SlabHeader* header) {
  if (os::kMustCommit || os::page_size() != kSmallPage) return false;
  HugePage& page = region_of(header)->page[slot_of(header) / kSlotsPerHugePage];
  os::LockGuard guard(page_lock);
  make_small(&page);
  return page.backing == Backing::small;
}

size_t purge_inside(const SlabHeader* header, uint16_t pages) {
  char* slot = header->start - reinterpret_cast<uintptr_t>(header->start) % kSlotSize;
  const uint32_t gone = pages & ~purge_runs(slot, kSmallPage, pages);
  return static_cast<size_t>(__builtin_popcount(gone)) * kSmallPage;
}

bool purge_all(size_t keep) {
  os::Event().log("Flush request", nullptr, keep, 0, "to keep");
  flush_cache();
  const bool any = purge_while(keep == 0 ? kForEver : 0, keep / kSlotSize, os::now_ms());
  return (keep == 0 && give_all_pinned()) || any;
}

}  // namespace hummock::pages
