// Purging: a tick purges what has been free for half the decay time or longer, so that all is gone after the
// decay time. Calls that free purge what exceeds the budget, longest run first.
//
// No call does much: a tick makes at most kCallsPerTick system calls. If anything is left, the next slow path
// goes on.
//
// The system call is made without the lock: see purging.cc.
#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/limits.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/runs.h"
#include "pages/span_cache.h"

namespace hummock::pages {

size_t purged_slots;
size_t high_used;
uint64_t tick_time;
base::OwnLine<bool> behind;

namespace {

constexpr uint64_t kTickMs = 10;  // a tick sooner than this does nothing, unless something was left
constexpr unsigned kCallsPerTick = 3;
constexpr unsigned kSlotsPerCall = 64;  // 4 MiB: at most some tenths of a millisecond
constexpr size_t kLeastBudget = 8 << 20;
constexpr size_t kShareOfUsed = 8;
constexpr size_t kAuto = SIZE_MAX;   // of dirty_max
constexpr size_t kRegretWeight = 2;  // so a program need not fault in all of what it keeps in the end

uint64_t last_tick;   // ms; atomic, relaxed, as the next two: two threads that tick at once do no harm
uint64_t last_flush;  // ms, of some span cache entries
unsigned next_flush;

uint64_t trim_before;  // ms; atomic, relaxed: memory that was free then is due

uint64_t refused_until;  // ms; atomic, relaxed: after a refusal not every free asks again

size_t least_budget() {
  return bound_by_use(kLeastBudget, kShareOfUsed) / kSlotSize;
}

size_t budget_slots() {
  if (options::values.decay_ms == 0) return 0;
  const size_t most = options::values.dirty_max;
  const size_t regret = bound_regret(kRegretWeight * slot_regret.value.bytes());
  const size_t budget = most != kAuto ? most / kSlotSize : least_budget() + regret / kSlotSize;
  if (__builtin_expect(relaxed(limits.soft) == 0, true)) return budget;
  const size_t room = slots_within_limit();
  return budget < room ? budget : room;
}

// How much one call may still do, and what it did.
struct Slice {
  unsigned calls;     // to the system, left
  size_t slots;       // purged
  const char* first;  // the first of them
  bool refused;
};

unsigned ones_at(uint32_t bits, unsigned bit) {
  const uint32_t rest = ~(bits >> bit);
  return rest == 0 ? kSlotsPerHugePage : static_cast<unsigned>(__builtin_ctz(rest));
}

// How many slots from this one on may be purged. It continues into another huge page only if that needs no
// split and the page has been free since `since`.
unsigned count_purgeable(const Region* region, unsigned slot, unsigned most, uint64_t since) {
  unsigned number = slot / kSlotsPerHugePage;
  unsigned slots = ones_at(region->page[number].purgeable(), slot % kSlotsPerHugePage);
  if (slots == 0) return 0;
  while ((slot + slots) % kSlotsPerHugePage == 0 && slots < most && ++number < region->huge_pages) {
    const HugePage& page = region->page[number];
    if (page.since > since || (page.backing != Backing::small && page.used != 0)) break;
    slots += ones_at(page.purgeable(), 0);
    if ((slot + slots) / kSlotsPerHugePage == number) break;
  }
  return slots;
}

// Slots to purge with one call.
struct Run {
  Region* region;
  unsigned first, slots;  // 0 slots: none
};

// The first slot of the oldest huge page, and what follows it and has been free since `before`. page_lock is
// held, as for the next function.
Run oldest_run(unsigned most, uint64_t before) {
  const HugePage* page = purge_queue.front();
  if (page == nullptr) return {};
  const unsigned slot = page->number * kSlotsPerHugePage + base::lowest_bit(page->purgeable());
  return {page->region, slot, count_purgeable(page->region, slot, most, before)};
}

// Part of the longest run that has memory, or of the oldest one: so few calls purge much, and short runs stay
// for spans to come.
Run largest_run(unsigned most) {
  const SlabHeader* run = longest_warm_run();
  if (run == nullptr) return oldest_run(most, kForEver);
  Region* region = region_of(run);
  const unsigned slot = first_warm(region, slot_of(run), slot_of(run) + run->slots);
  const unsigned slots = count_purgeable(region, slot, most, kForEver);
  return slots == 0 ? oldest_run(most, kForEver) : Run{region, slot, slots};
}

// What is too much goes from what was freed a moment ago, if that is long: all of it has memory, and of the
// longest run little may.
Run excess_run(const Run& freed, unsigned most) {
  if (freed.slots >= kSlotsPerCall) {
    const unsigned wanted = freed.slots < most ? freed.slots : most;
    const unsigned slots = count_purgeable(freed.region, freed.first, wanted, kForEver);
    if (slots >= kSlotsPerCall) return {freed.region, freed.first, slots};
  }
  return largest_run(most);
}

// Called with page_lock held, which it drops for the system call. Meanwhile another thread may purge other
// slots of the huge page, so a loose one is made small first.
void purge_run(const Run& run, Slice* slice) {
  const auto [region, slot, slots] = run;
  char* start = region->base + slot * kSlotSize;
  const unsigned forks = begin_purging(region, slot, slots);
  page_lock.unlock();
  const bool gone = os::purge(start, slots * kSlotSize);
  page_lock.lock();
  --slice->calls;
  if (!is_purging(forks)) return;
  end_purging(region, slot, slots, gone);
  slice->refused = !gone;
  if (!gone) return;
  purged_slots += slots;
  if (slice->slots == 0) slice->first = start;
  slice->slots += slots;
}

// Returns a hugetlb page that is wholly free to the system's pool. Locks as purge_run.
bool give_pinned(HugePage* page) {
  const unsigned slot = page->number * kSlotsPerHugePage;
  const unsigned forks = begin_purging(page->region, slot, kSlotsPerHugePage);
  page_lock.unlock();
  const bool gone = os::replace_by_small(page->start(), kHugePageSize);
  const bool advised = gone && os::advise_huge(page->start(), kHugePageSize, true) == 0;
  page_lock.lock();
  if (!is_purging(forks)) return false;
  if (gone) {
    set_backing(page, advised ? Backing::whole : Backing::small);
    __atomic_fetch_sub(&pinned_bytes, kHugePageSize, __ATOMIC_RELAXED);
    if (advised) __atomic_fetch_add(&advised_bytes, kHugePageSize, __ATOMIC_RELAXED);
    purged_slots += kSlotsPerHugePage;
  }
  end_purging(page->region, slot, kSlotsPerHugePage, gone);
  return gone;
}

bool give_all_pinned() {
  if (relaxed(pinned_bytes) == 0) return false;
  os::Event event;
  size_t given = 0;
  Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE);
  for (; region != nullptr; region = region->next) {
    os::LockGuard guard(page_lock);  // one region at a time, because malloc waits for it
    for (unsigned i = 0; i < region->huge_pages; ++i) {
      HugePage* page = &region->page[i];
      if (page->backing == Backing::pinned && page->used == 0) given += give_pinned(page);
    }
  }
  if (given != 0) event.log("Purge", nullptr, given * kHugePageSize, 0, "large pages that were set aside");
  return given != 0;
}

// As many slots as one call may purge, or as are too many if that is less; but a call is worth kSlotsPerCall.
unsigned slots_for_call(unsigned most, size_t too_many) {
  if (too_many < most) most = static_cast<unsigned>(too_many);
  return most > kSlotsPerCall ? most : kSlotsPerCall;
}

// Purges what entered the queue before `before`, oldest first. Then purges what was `freed`, and longest
// runs, while more than `keep` slots are dirty. Purges about `most` slots with a call. True: that is done.
bool purge_queued(uint64_t before, size_t keep, unsigned most, Slice* slice, const Run& freed = {}) {
  os::LockGuard guard(page_lock);
  while (const HugePage* page = purge_queue.front()) {
    const bool due = page->since <= before;
    if (!due && dirty_slots <= keep) break;
    if (slice->calls == 0) return false;
    const Run run =
        due ? oldest_run(kSlotsPerCall, before) : excess_run(freed, slots_for_call(most, dirty_slots - keep));
    if (!due) slot_regret.value.note_purged(run.slots * kSlotSize / kSmallPage);
    purge_run(run, slice);
    if (slice->refused) break;
  }
  return true;
}

void after_slice(os::Event& event, const Slice& slice, uint64_t now) {
  if (slice.slots != 0) event.log("Purge", slice.first, slice.slots * kSlotSize, 0);
  if (slice.refused) set_relaxed(refused_until, now + 100);
}

// True: nothing that is due is left.
bool purge_some(uint64_t before, size_t keep, Slice* slice) {
  if (slice->calls == 0) return false;
  const bool dropped = drop_kept(before, keep) != 0;
  if (dropped) --slice->calls;
  os::Event event;
  const bool done = purge_queued(before, keep, 0, slice);
  after_slice(event, *slice, relaxed(tick_time));
  return done && !dropped;
}

// Flushes some of the span caches; all of them within a quarter of the decay time.
void flush_some(uint64_t now, uint64_t decay) {
  constexpr unsigned kParts = 32;
  if (now - __atomic_load_n(&last_flush, __ATOMIC_RELAXED) < decay / 4 / kParts) return;
  __atomic_store_n(&last_flush, now, __ATOMIC_RELAXED);
  const unsigned first = __atomic_fetch_add(&next_flush, kEntries / kParts, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < kEntries / kParts; ++i) empty_entry((first + i) % kEntries);
}

}  // namespace

bool dirty_over_budget() {
  const size_t dirty = relaxed(dirty_slots);
  const auto& values = options::values;
  const bool fixed = values.dirty_max != kAuto || values.decay_ms <= 0 || relaxed(limits.soft) != 0;
  if (!fixed && (dirty <= kLeastBudget / kSlotSize || dirty <= least_budget())) return false;  // most often
  return values.decay_ms >= 0 && dirty > budget_slots();
}

void purge_excess(unsigned slots, const SlabHeader* first, unsigned length) {
  const bool few = slots < kSlotsPerCall;
  if (relaxed(tick_time) < relaxed(refused_until) || (few && is_behind())) return;
  Slice slice = {1, 0, nullptr, false};
  os::Event event;
  const Run freed = {region_of(first), slot_of(first), length};
  const bool done = purge_queued(0, budget_slots(), slots + slots / 2, &slice, freed);
  after_slice(event, slice, relaxed(tick_time));
  // The next free of this call may be too much again.
  if (few || !done) set_behind(true);
}

namespace {

__attribute__((noinline)) void give_what_is_due(uint64_t now, uint64_t decay, bool timed, unsigned* calls) {
  if (timed) {
    const uint64_t last = __atomic_exchange_n(&last_tick, now, __ATOMIC_RELAXED);
    flush_some(now, decay);
    fade_regret(now, decay, now > last ? now - last : 0);
    if (renew_limits_in_turn(now, calls)) return;  // a call does the one or the other
  }
  if (now < relaxed(refused_until)) return;
  const unsigned most = *calls < kCallsPerTick ? *calls : kCallsPerTick;
  Slice slice = {most, 0, nullptr, false};
  uint64_t before = now > decay / 2 ? now - decay / 2 : 0;
  if (before < relaxed(trim_before)) before = relaxed(trim_before);
  const bool done = purge_some(before, budget_slots(), &slice);
  *calls -= most - slice.calls;
  // Where all calls were made, what this call of the program still frees waits for the next.
  set_behind(!done || slice.calls == 0);
  if (timed && *calls == kMostCalls && collapse_one()) *calls = 0;  // a call does the one or the other
}

}  // namespace

bool purge_due(uint64_t now, unsigned* calls) {
  const int64_t decay = options::values.decay_ms;
  if (decay < 0) return false;
  if (relaxed(tick_time) != now) set_relaxed(tick_time, now);
  const bool timed = now - __atomic_load_n(&last_tick, __ATOMIC_RELAXED) >= kTickMs;
  if (timed || is_behind() || dirty_over_budget()) {
    give_what_is_due(now, static_cast<uint64_t>(decay), timed, calls);
  }
  return timed;
}

void ask_trim(uint64_t now) {
  empty_caches();
  set_relaxed(trim_before, now);
  set_relaxed(tick_time, now);
  set_relaxed(behind.value, true);
}

namespace {

// The huge page of the first slot, or of the last, which may be another.
HugePage& huge_page_of(const SlabHeader* slab, bool last) {
  const unsigned slot = slot_of(slab) + (last ? slab->slots - 1u : 0);
  return region_of(slab)->page[slot / kSlotsPerHugePage];
}

}  // namespace

// No lock: it may be advised huge the moment after in any case, and then purging costs a huge page, no more.
bool can_purge_inside(const SlabHeader* slab) {
  if (os::kMustCommit || os::page_size() != kSmallPage) return false;
  return relaxed(huge_page_of(slab, false).backing) == Backing::small &&
         relaxed(huge_page_of(slab, true).backing) == Backing::small;
}

bool split_huge_page(const SlabHeader* slab) {
  if (os::kMustCommit || os::page_size() != kSmallPage) return false;
  os::LockGuard guard(page_lock);
  HugePage& first = huge_page_of(slab, false);
  HugePage& last = huge_page_of(slab, true);
  make_small(&first);
  make_small(&last);
  return first.backing == Backing::small && last.backing == Backing::small;
}

uint16_t pages_within(uint16_t pages, unsigned* calls) {
  unsigned taken = 0, made = 0;
  for (uint32_t left = pages; left != 0 && made < *calls; ++made) {
    const unsigned first = base::lowest_bit(left);
    const uint32_t run = base::low_mask(ones_at(left, first)) << first;
    taken |= run;
    left &= ~run;
  }
  *calls = made;
  return static_cast<uint16_t>(taken);
}

size_t purge_inside(const SlabHeader* slab, uint16_t pages) {
  char* start = slab->start - reinterpret_cast<uintptr_t>(slab->start) % kSlotSize;
  const size_t part = part_bytes(slab);
  size_t gone = 0;
  for (uint32_t left = pages; left != 0;) {
    const unsigned first = base::lowest_bit(left), count = ones_at(left, first);
    if (os::purge(start + first * part, count * part)) gone += count * part;
    left &= ~(base::low_mask(count) << first);
  }
  set_relaxed(in_use_lately.value, in_use_bytes());
  return gone;
}

bool purge_all(size_t keep) {
  os::Event().log("Flush request", nullptr, keep, 0, "to keep");
  empty_caches();
  // This call ignores what others free from now on.
  const uint64_t before = keep == 0 ? os::now_ms() : 0;
  const size_t most = keep == 0 ? SIZE_MAX : keep / kSlotSize;
  bool any = false, done = false;
  while (!done) {
    set_relaxed(tick_time, os::now_ms());
    Slice slice = {kCallsPerTick, 0, nullptr, false};
    done = purge_some(before, most, &slice);
    any = any || !done || slice.slots != 0;
  }
  return (keep == 0 && give_all_pinned()) || any;
}

}  // namespace hummock::pages
