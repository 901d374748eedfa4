// Collapses small pages that are in use into huge pages: where the user asked for huge pages and touched the
// memory before it had them, and with huge_pages:auto where a large heap is full.
//
// With auto Hummock tells the kernel to make nothing huge by itself, for every region and for good. So there
// is a huge page only where one was promoted here, because it was full then. What is purged afterwards comes
// back on small pages, and a mapping that memory is moved to does not ask for huge ones.
#include "base/bits.h"
#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/region.h"

namespace hummock::pages {
namespace {

using options::HugePages;

constexpr size_t kLargeHeap = size_t{64} << 20;  // in a smaller heap huge pages gain less than they may cost
constexpr unsigned kLookAt = 64;                 // huge pages looked at in one step
constexpr unsigned kTries = 1;                   // system calls in one step that ask what has been touched
constexpr uint64_t kShare = 50;                  // 1/50 of the time at most
constexpr uint64_t kIdleMs = 100;                // when nothing was found
constexpr uint64_t kWorthLogging = 50000;        // ns; a shorter call found a huge page that was one already
constexpr uint64_t kSlow = 5000000;  // ns; a longer call counts as a refusal: memory is fragmented

}  // namespace

bool collapse_pending;

namespace {

uint64_t due;  // ms; atomic, relaxed: two threads may both go
BackOff back_off;
bool allowed;         // atomic, relaxed: by the system's settings, as they were after the last refusal
Region* next_region;  // guarded by page_lock, as are the next two
unsigned next_number;
bool found;  // this round of all regions found a candidate, or the heap has grown

bool is_auto() {
  return options::values.huge_pages == HugePages::automatic;
}

bool is_worth_it() {
  if (!is_auto()) return relaxed(advised_bytes) != 0;
  return relaxed(used_slots) >= kLargeHeap / kSlotSize && under_cap(kHugePageSize);
}

bool is_candidate(const HugePage* page) {
  const Backing wanted = is_auto() ? Backing::small : Backing::whole;
  if (page->backing != wanted || !page->is_full() || page->purging != 0 || page->collapsed) return false;
  return !page->region->guarded || page->number + 1u != page->region->huge_pages;  // that can be no huge page
}

struct Candidate {
  HugePage* page;  // null: none
  uint32_t used;
};

// page_lock is held. After a round without a candidate, collapses cause no more ticks until the heap grows.
void begin_round() {
  if (!found) set_relaxed(collapse_pending, false);
  found = false;
  next_region = regions;
  next_number = 0;
}

// Finds a full page that is not known to be huge, and marks it.
Candidate find_candidate() {
  os::LockGuard guard(page_lock);
  for (unsigned looked = 0; looked < kLookAt; ++looked) {
    if (next_region == nullptr) begin_round();
    if (next_region == nullptr) break;
    HugePage* page = &next_region->page[next_number];
    if (++next_number >= next_region->huge_pages) next_region = next_region->next, next_number = 0;
    if (!is_candidate(page)) continue;
    page->collapsed = found = true;
    return {page, page->used};
  }
  return {nullptr, 0};
}

// Are three quarters of it in use: touched, in slots that are used?
bool is_in_use(const Candidate& candidate) {
  unsigned char touched[kHugePageSize / kSmallPage];
  if (!os::find_touched(candidate.page->start(), kHugePageSize, touched)) return false;
  const size_t pages = kHugePageSize / os::page_size(), in_slot = kSlotSize / os::page_size();
  size_t count = 0;
  for (uint32_t left = candidate.used; left != 0; left &= left - 1) {
    const unsigned char* page = touched + base::lowest_bit(left) * in_slot;
    for (size_t i = 0; i < in_slot; ++i) count += page[i] & 1;
  }
  return count >= pages - pages / 4;
}

// A huge page to promote now, or null; *more: there may be others.
HugePage* find_promotable(bool* more) {
  for (unsigned tries = 0; tries < kTries; ++tries) {
    const Candidate candidate = find_candidate();
    *more = candidate.page != nullptr;
    if (!*more || !is_auto() || is_in_use(candidate)) return candidate.page;
    os::LockGuard guard(page_lock);
    candidate.page->collapsed = false;
  }
  return nullptr;
}

// The page is loose before the call that makes it huge, so that a purge of a part of it makes it small again.
void begin(HugePage* page) {
  os::LockGuard guard(page_lock);
  if (page->backing != Backing::small) return;
  set_backing(page, Backing::loose);
  __atomic_fetch_add(&advised_bytes, kHugePageSize, __ATOMIC_RELAXED);
}

void end(HugePage* page, bool done) {
  os::LockGuard guard(page_lock);
  page->collapsed = done && page->backing != Backing::small;
  if (!done) return make_small(page);
  discount(page);
  page->unread |= ~page->dirty;  // what was clean has memory now, and reads as zeros
  page->dirty = ~uint32_t{0};
  page->partial = 0;
  count(page);
  refile(page);
}

int promote(HugePage* page) {
  if (!is_auto()) return os::collapse(page->start(), kHugePageSize);
  begin(page);
  int error = os::advise_huge(page->start(), kHugePageSize, true);
  if (error == 0) error = os::collapse(page->start(), kHugePageSize);
  os::advise_huge(page->start(), kHugePageSize, false);
  return error;
}

void note_refusal(uint64_t now, HugePage* page, const char* why) {
  back_off.refused(now);
  __atomic_store_n(&allowed, false, __ATOMIC_RELAXED);
  __atomic_fetch_add(&huge_refusals, 1, __ATOMIC_RELAXED);
  os::Event().log("Collapse failed", page == nullptr ? nullptr : page->start(), kHugePageSize, 0, why);
}

// A step or two of their own, at first and after each refusal.
void look_at_settings(uint64_t now) {
  static bool above;  // atomic, relaxed: two threads that ask for the same are harmless
  const char* why = nullptr;
  const os::Setting setting = os::transparent_setting(relaxed(above), &why);
  set_relaxed(above, setting == os::Setting::above);
  if (setting == os::Setting::denied) return note_refusal(now, nullptr, why);
  if (setting == os::Setting::allowed) __atomic_store_n(&allowed, true, __ATOMIC_RELAXED);
}

}  // namespace

bool collapse_one() {
  if (!os::kHasTransparent || !is_worth_it()) return false;
  const uint64_t now = os::now_ms();
  if (now < __atomic_load_n(&due, __ATOMIC_RELAXED) || !back_off.may(now)) return false;
  if (!__atomic_load_n(&allowed, __ATOMIC_RELAXED)) return look_at_settings(now), true;
  bool more = false;
  HugePage* page = find_promotable(&more);
  if (!more) __atomic_store_n(&due, now + kIdleMs, __ATOMIC_RELAXED);
  if (page == nullptr) return more;
  os::Event event;
  const uint64_t before = os::now_ns();
  const int error = promote(page);
  const uint64_t took = os::now_ns() - before;
  __atomic_store_n(&due, now + took * kShare / 1000000, __ATOMIC_RELAXED);
  end(page, error == 0);
  if (error != 0) return note_refusal(now, page, os::error_name(error)), true;
  if (took < kSlow) {
    back_off.served();
  } else {
    back_off.refused(now);
  }
  if (took >= kWorthLogging) event.log("Collapse", page->start(), kHugePageSize, 0);
  return true;
}

void expect_collapses() {
  const bool wanted = is_auto() ? mapped_bytes >= kLargeHeap : relaxed(advised_bytes) != 0;
  if (!os::kHasTransparent || !wanted) return;
  found = true;
  set_relaxed(collapse_pending, true);
}

void make_small(HugePage* page) {
  if (page->backing != Backing::loose) return;
  set_backing(page, Backing::small);
  page->collapsed = false;
  __atomic_fetch_sub(&advised_bytes, kHugePageSize, __ATOMIC_RELAXED);
}

}  // namespace hummock::pages
