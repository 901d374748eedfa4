// The page heap: where spans go, what a free slot's run says, and how memory goes back.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/options.h"
#include "os/os.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/runs.h"
#include "pages/span_cache.h"
#include "support/advises.h"
#include "support/figures.h"
#include "support/support.h"

using namespace hummock::pages;
using hummock::kSlotSize;
using hummock::SlabHeader;
namespace options = hummock::options;
namespace os = hummock::os;

namespace {

SlabHeader* take(unsigned slots, unsigned align = 1) {
  const Span span = allocate_span(slots, align);
  REQUIRE(span.header != nullptr);
  CHECK(span.header->slots == slots);
  CHECK(slot_of(span.header) % align == 0);
  return span.header;
}

// Past the caches, and nothing is given back to the system.
void give(SlabHeader* header) {
  header->owner = hummock::kNobody;
  header->kind = hummock::Kind::free;
  give_span(header);
}

// Each run of clear bits is one run, and says so at both its ends.
bool runs_are_whole() {
  os::LockGuard guard(page_lock);
  for (Region* region = regions; region != nullptr; region = region->next) {
    const unsigned end = region->huge_pages * kSlotsPerHugePage;
    for (unsigned slot = 1; slot < end; ++slot) {
      if (!is_free(region, slot)) continue;
      const unsigned first = slot;
      while (slot < end && is_free(region, slot)) ++slot;
      const unsigned slots = slot - first;
      if (region->header(first)->slots != slots || region->header(slot - 1)->slots != slots) return false;
      if (run_of(region, slot - 1) != region->header(first)) return false;
    }
  }
  return true;
}

SlabHeader* place_for(unsigned slots, unsigned align = 1) {
  os::LockGuard guard(page_lock);
  const Place place = find_place(slots, align);
  return place.run == nullptr ? nullptr : region_of(place.run)->header(place.first);
}

// A region of its own, all of which is used: [0] is its first 32 slots, [1] the next, and so on.
std::vector<SlabHeader*> own_region() {
  std::vector<SlabHeader*> parts;
  SlabHeader* all = take(480);
  Region* region = region_of(all);
  for (unsigned i = 0; i < 480; i += 32) {
    SlabHeader* part = region->header(slot_of(all) + i);
    part->slots = 32;
    part->bytes = 32 * kSlotSize;
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

TEST_CASE("random spans: none overlap, what reads zero does, runs are whole, all comes back") {
  support::HangGuard guard(300);
  support::Random random(support::run_seed());
  struct Held {
    SlabHeader* header;
    uint64_t mark;
  };
  std::vector<Held> held;
  const auto is_intact = [](const Held& each) {
    bool intact = true;
    for (unsigned i = 0; i < each.header->slots; ++i) {
      uint64_t word;
      memcpy(&word, each.header->start + i * kSlotSize, 8);
      intact = intact && word == each.mark + i;
    }
    return intact;
  };
  const auto mark = [](const Held& each) {
    for (unsigned i = 0; i < each.header->slots; ++i) {
      const uint64_t word = each.mark + i;
      memcpy(each.header->start + i * kSlotSize, &word, 8);
    }
  };
  for (size_t round = 0; round < support::scaled(20000, 500); ++round) {
    if (held.size() > 60 || (!held.empty() && random.one_in(3))) {
      const size_t i = random.below(held.size());
      Held& each = held[i];
      REQUIRE(is_intact(each));
      const unsigned slots = static_cast<unsigned>(random.between(1, each.header->slots + 20));
      if (random.one_in(2)) {
        release_span(each.header);
        each = held.back();
        held.pop_back();
      } else if (slots < each.header->slots) {
        shrink_span(each.header, slots);
      } else if (slots <= kMaxSpanSlots && slots > each.header->slots && grow_span(each.header, slots)) {
        mark(each);
      }
    } else {
      const unsigned align = random.one_in(4) ? 1u << random.below(6) : 1;
      const unsigned slots =
          static_cast<unsigned>(random.one_in(5) ? random.between(1, 400) : random.between(1, 40));
      const Span span = allocate_span(slots, align);
      REQUIRE(span.header != nullptr);
      REQUIRE(slot_of(span.header) % align == 0);
      if (span.zeroed) REQUIRE(support::all_zero(span.header->start, 0, slots * kSlotSize));
      held.push_back({span.header, uint64_t{round} << 20});
      mark(held.back());
    }
    if (round % 500 == 0) {
      REQUIRE(runs_are_whole());
      if (random.one_in(4)) purge_all(0);
    }
  }
  for (const Held& each : held) {
    CHECK(is_intact(each));
    release_span(each.header);
  }
  purge_all(0);
  CHECK(runs_are_whole());
  CHECK(cached_slots() == 0);
  CHECK(dirty_slots == 0);
}

TEST_CASE("the shortest run that is long enough, memory before none, aligned places") {
  purge_all(0);
  std::vector<SlabHeader*> parts = own_region();
  // Runs of 32 and 64 slots with memory, and one of 32 without.
  give(parts[1]);
  give(parts[4]);
  give(parts[5]);
  CHECK(place_for(32) == parts[1]);
  SlabHeader* place = place_for(33);
  CHECK((place == parts[4] || place == parts[5] - 1));
  {
    os::LockGuard guard(page_lock);
    CHECK(run_of(region_of(parts[5]), slot_of(parts[5])) == parts[4]);
    CHECK(longest_warm_run() == parts[4]);
  }
  SlabHeader* small = take(5);
  CHECK(region_of(small) == region_of(parts[1]));
  CHECK(slot_of(small) / 32 == slot_of(parts[1]) / 32);
  CHECK(slot_of(place_for(16, 16)) % 16 == 0);
  give(small);
  for (size_t i : {0, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14}) give(parts[i]);
  CHECK(runs_are_whole());
  purge_all(0);
}

TEST_CASE("an aligned span finds a place that is just as long") {
  std::vector<SlabHeader*> held;
  for (int i = 0; i < 60; ++i) held.push_back(take(32, 32));
  for (size_t i = 0; i < held.size(); i += 2) give(held[i]);
  std::vector<SlabHeader*> freed;
  for (size_t i = 0; i < held.size(); i += 2) freed.push_back(held[i]);
  size_t again = 0;
  for (size_t i = 0; i < held.size(); i += 2) {
    held[i] = take(32, 32);
    again += std::find(freed.begin(), freed.end(), held[i]) != freed.end();
  }
  CHECK(again >= 28);
  for (SlabHeader* each : held) give(each);
  purge_all(0);
}

TEST_CASE("a tick makes few calls, and the next goes on") {
  std::vector<SlabHeader*> held;
  for (int i = 0; i < 400; ++i) held.push_back(take(3));
  for (size_t i = 0; i < held.size(); i += 2) give(held[i]);
  const uint32_t dirty = dirty_slots;
  CHECK(dirty >= 600);
  os::calls.advise = support::count_advise;
  const uint64_t later = os::now_ms() + 100'000;
  size_t ticks = 0;
  for (; dirty_slots != 0 && ticks < 1000; ++ticks) {
    support::advises = 0;
    unsigned calls = kMostCalls;
    purge_due(later, &calls);
    CHECK(support::advises <= 3);
    CHECK(calls + support::advises <= kMostCalls);
  }
  os::calls = support::real_calls;
  CHECK(ticks >= 20);
  CHECK(ticks < 300);
  CHECK(runs_are_whole());
  for (size_t i = 1; i < held.size(); i += 2) give(held[i]);
  purge_all(0);
}

namespace {

// Three spans of as many slots as the budget has come and go, and come again.
void burst() {
  SlabHeader* held[3];
  for (SlabHeader*& each : held) each = take(128);
  for (SlabHeader* each : held) {
    release_span(each);
    CHECK(dirty_slots <= 128);
  }
  CHECK(dirty_slots > 96);  // it purges what is too much, and no more
  for (SlabHeader*& each : held) each = take(128);
  for (SlabHeader* each : held) give(each);
}

void tick_at(uint64_t ms) {
  unsigned calls = kMostCalls;
  purge_due(ms, &calls);
}

}  // namespace

TEST_CASE("regret is halved each decay time, and begins anew after a pause") {
  purge_all(0);
  CHECK(options::values.decay_ms == 1000);
  const Regret& regret = slot_regret.value;
  uint64_t now = os::now_ms() + 1'000'000;
  tick_at(now);  // a pause
  CHECK(regret.bytes() == 0);
  burst();
  const size_t whole = regret.bytes();
  CHECK(whole >= 256 * kSlotSize);
  CHECK(whole <= 384 * kSlotSize);
  for (const uint64_t end = now + 900; now < end;) tick_at(now += 100);
  CHECK(regret.bytes() == whole);
  tick_at(now += 100);
  CHECK(regret.bytes() == whole / 2);
  for (const uint64_t end = now + 1000; now < end;) tick_at(now += 100);
  CHECK(regret.bytes() == whole / 4);
  tick_at(now += 500);
  CHECK(regret.bytes() == 0);
  // What was purged before a pause and is needed after it is not regretted.
  SlabHeader* span = take(256);
  release_span(span);
  tick_at(now += 500);
  give(take(256));
  CHECK(regret.bytes() == 0);
  purge_all(0);
}

TEST_CASE("the span caches hold what they may, and less when less is in use") {
  hummock_trim(0);
  CHECK(cached_slots() == 0);
  std::vector<SlabHeader*> held;
  for (unsigned slots = 1; slots <= 64; ++slots) held.push_back(take(slots));
  for (SlabHeader* each : held) release_span(each);
  const size_t used = used_slots - cached_slots();
  CHECK(cached_slots() <= std::max(size_t{64}, used / 32));
  // What comes and goes finds room in the end, at the cost of what does not.
  for (int i = 0; i < 400; ++i) release_span(take(40));
  SlabHeader* usual = take(40);
  release_span(usual);
  CHECK(cache_entries[kNearEntries + 39] == usual);
  CHECK(cached_slots() <= std::max(size_t{64}, used / 32));
  if (sizeof(void*) < 8) return;
  // 8 GiB in use, of which nothing is touched: 256 MiB.
  held.clear();
  for (int i = 0; i < 300; ++i) held.push_back(take(400));
  std::vector<SlabHeader*> more;
  for (unsigned slots = 1; slots <= 64; ++slots) more.push_back(take(slots));
  for (SlabHeader* each : more) release_span(each);
  CHECK(cached_slots() > 1000);
  // The same for a near cache.
  SlabHeader* near = take(3);
  near->kind = hummock::Kind::large;
  const unsigned entry = near_entry(7, 3);
  CHECK(make_cached(near, entry));
  CHECK(keep_in_other(entry, look_at_entry(entry), near) == nullptr);
  CHECK(take_entry(entry) == near);
  CHECK(near->kind == hummock::Kind::free);
  CHECK(take_entry(entry) == nullptr);
  // The entry still leads to it.
  near->kind = hummock::Kind::large;
  CHECK(make_cached(near, entry));
  CHECK(look_at_entry(entry) == near);
  CHECK(!make_cached(near, entry));
  CHECK(take_entry(entry) == near);
  release_span(near);
  for (SlabHeader* each : held) release_span(each);
  CHECK(cached_slots() <= 64 + 32);
  purge_all(0);
  CHECK(cached_slots() == 0);
  CHECK(runs_are_whole());
}

namespace {

size_t dirty_before;

// What the child of a fork has: everything that was dirty, also what this thread purges just now.
int look_from_child() {
  if (!runs_are_whole()) return 1;
  if (support::figures().dirty < dirty_before) return 2;
  void* block = hummock_malloc(3 << 20);
  memset(block, 1, 3 << 20);
  hummock_free(block);
  hummock_trim(0);
  return support::figures().dirty < dirty_before && runs_are_whole() ? 0 : 3;
}

int fork_status = -1;
int fork_while_purging(void* address, size_t size, int advice) {
  os::calls = support::real_calls;
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) _exit(look_from_child());
    REQUIRE(waitpid(child, &fork_status, 0) == child);
  }).join();
  return support::real_calls.advise(address, size, advice);
}

// The same from a signal handler, whose child returns into the purge.
pid_t forked = -1;
int fork_inside(void* address, size_t size, int advice) {
  os::calls = support::real_calls;
  const int result = support::real_calls.advise(address, size, advice);
  forked = fork();
  return result;
}

void free_some(size_t mib) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < mib; ++i) blocks.push_back(memset(hummock_malloc(1 << 20), 1, 1 << 20));
  for (void* each : blocks) hummock_free(each);
}

}  // namespace

TEST_CASE("a fork while another thread purges: in the child these slots are free") {
  free_some(32);
  dirty_before = support::figures().dirty;
  REQUIRE(dirty_before != 0);
  os::calls.advise = fork_while_purging;
  purge_all(0);
  CHECK(fork_status == 0);
  CHECK(runs_are_whole());
}

TEST_CASE("a fork in the middle of a purge") {
  free_some(32);
  os::calls.advise = fork_inside;
  purge_all(0);
  const bool whole = runs_are_whole();
  if (forked == 0) {
    free_some(40);
    _exit(whole && runs_are_whole() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(forked, &status, 0) == forked);
  CHECK(status == 0);
  CHECK(whole);
}
