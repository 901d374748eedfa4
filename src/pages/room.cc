#include "pages/room.h"

#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/region.h"
#include "pages/runs.h"
#include "pages/span_cache.h"

namespace hummock::pages {
namespace {

constexpr unsigned kLeastHole = (1 << 20) / kSlotSize;

// Slots that are a hole, or will be, or a part of one.
struct Hole {
  Region* region;  // null: none
  unsigned first, slots;
  char* start() const { return region->base + first * kSlotSize; }
  size_t size() const { return slots * kSlotSize; }
};

// Not in a region with memory that the user asked for, or that a fork would copy.
bool may_be_hole(const SlabHeader* run) {
  const Region* region = region_of(run);
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    const Backing backing = region->page[i].backing;
    if (backing != Backing::small && backing != Backing::loose) return false;
  }
  return true;
}

void mark(const Hole& hole, bool is_hole) {
  for_parts(hole.region, hole.first, hole.slots, [is_hole](HugePage* page, uint32_t mask, unsigned) {
    page->holes = is_hole ? page->holes | mask : page->holes & ~mask;
  });
}

// One of the longest runs. From now on nobody takes its slots.
Hole begin_hole() {
  os::LockGuard guard(page_lock);
  const SlabHeader* run = longest_run(kLeastHole, may_be_hole);
  if (run == nullptr) return {};
  const Hole hole = {region_of(run), slot_of(run), run->slots};
  begin_purging(hole.region, hole.first, hole.slots);
  mark(hole, true);
  return hole;
}

// It is one, or, if the system refused, free slots again.
void settle_hole(const Hole& hole, bool made) {
  os::LockGuard guard(page_lock);
  if (made) {
    mapped_bytes -= hole.size();
    join_hole(hole.region, hole.first, hole.slots);
  } else {
    mark(hole, false);
    end_purging(hole.region, hole.first, hole.slots, false);
  }
}

// A part that is mapped again becomes free slots.
void end_hole(SlabHeader* hole, const Hole& part) {
  os::LockGuard guard(page_lock);
  mapped_bytes += part.size();
  cut_run(hole, part.first, part.slots);
  mark(part, false);
  end_purging(part.region, part.first, part.slots, true);
}

// The bytes that it returned; 0: nothing is free, or the system refused. growth_lock is held.
size_t make_hole(bool by_limit) {
  const Hole hole = os::kMustCommit ? Hole{} : begin_hole();
  if (hole.region == nullptr) return 0;
  os::Event event;
  // If mappings are what is lacking, a hole is of no use, and may not be filled again.
  const bool helps = by_limit || os::has_mapping_left(hole.start(), hole.size());
  const bool made = helps && os::unmap(hole.start(), hole.size());
  settle_hole(hole, made);
  if (!made) return 0;
  event.log("Free", hole.start(), hole.size(), -static_cast<ptrdiff_t>(hole.size()), "free slots: no room");
  return hole.size();
}

size_t possible_holes() {
  os::LockGuard guard(page_lock);
  return slots_in_runs(kLeastHole) * kSlotSize;
}

SlabHeader* find_hole(unsigned slots, const SlabHeader* after) {
  os::LockGuard guard(page_lock);
  return next_hole(slots, after);
}

// Maps as much of the hole as is free and the system gives, at least so many slots, and says what. Counts
// down the tries.
bool map_part(Hole* hole, unsigned slots, unsigned* tries) {
  const unsigned end = hole->first + hole->slots;
  for (; hole->first + slots <= end && *tries != 0; --*tries) {
    const os::Filled filled = os::map_if_free(hole->start(), hole->size());
    if (filled == os::Filled::yes) return true;
    if (hole->slots > slots) {
      hole->slots = hole->slots / 2 > slots ? hole->slots / 2 : slots;
    } else if (filled == os::Filled::refused) {
      *tries = 0;
      return false;
    } else {
      ++hole->first;
      hole->slots = end - hole->first;
    }
  }
  return false;
}

}  // namespace

bool Room::make() {
  if (!dropped_) {
    dropped_ = true;
    if (drop_all_kept()) return true;
  }
  if (give_up_guard(&guards_)) return true;
  // A mapping may need more for its alignment, and what is behind that is of no use.
  if (made_ >= wanted_ + 2 * kRegionSize) return false;
  const size_t left = os::room_left();  // reads a file, so before the lock
  if (growing_) return make_holes(left);
  os::LockGuard guard(growth_lock);
  return make_holes(left);
}

// A request that no holes can serve makes none: other threads would have to fill them again.
bool Room::make_holes(size_t left) {
  if (made_ == 0) empty_caches();
  if (wanted_ > left + possible_holes()) return false;
  size_t made = 0, last;
  do {
    last = make_hole(left != 0 || made_ + made != 0);
    made += last;
  } while (last != 0 && made + left < wanted_);
  made_ += made;
  return made != 0;
}

Added fill_hole(unsigned slots) {
  unsigned tries = 256;  // each fails if the program has mapped something there
  SlabHeader* hole = find_hole(slots, nullptr);
  for (; hole != nullptr && tries > 1; hole = find_hole(slots, hole)) {
    --tries;  // the hole may be too short
    Hole part = {region_of(hole), slot_of(hole), hole->slots};
    os::Event event;
    if (!map_part(&part, slots, &tries)) continue;
    keep_small(part.start(), part.size());
    event.log("Alloc SP", part.start(), part.size(), static_cast<ptrdiff_t>(part.size()), "slots, again");
    end_hole(hole, part);
    return {part.start(), part.size()};
  }
  return {};
}

void unmap_but_holes(const Region* region) {
  const unsigned end = region->huge_pages * kSlotsPerHugePage;
  for (unsigned slot = 0, next; slot < end; slot = next) {
    const bool hole = is_hole(region, slot);
    for (next = slot + 1; next < end && is_hole(region, next) == hole;) ++next;
    if (!hole) os::unmap(region->base + slot * kSlotSize, (next - slot) * kSlotSize);
  }
}

}  // namespace hummock::pages
