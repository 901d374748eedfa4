#include "pages/room.h"

#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/limits.h"
#include "pages/region.h"
#include "pages/runs.h"

namespace hummock::pages {
namespace {

constexpr unsigned kLeastHole = (1 << 20) / kSlotSize;

size_t hole_slots;  // in all holes; guarded by page_lock

struct Hole {
  Region* region;  // null: none
  unsigned first, slots;
  char* start() const { return region->base + first * kSlotSize; }
  size_t size() const { return slots * kSlotSize; }
};

bool is_hole(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].holes >> slot % kSlotsPerHugePage & 1) != 0;
}

// Not in a region with memory that the user asked for, or that a fork would copy.
bool may_be_hole(const SlabHeader* run) {
  const Region* region = region_of(run);
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    const Backing backing = region->page[i].backing;
    if (backing != Backing::small && backing != Backing::loose) return false;
  }
  return true;
}

void set_hole(const Hole& hole, bool is_hole) {
  for_parts(hole.region, hole.first, hole.slots, [is_hole](HugePage* page, uint32_t mask, unsigned) {
    page->holes = is_hole ? page->holes | mask : page->holes & ~mask;
  });
  const size_t slots = is_hole ? hole.slots : -size_t{hole.slots};
  hole_slots += slots;
  mapped_bytes -= slots * kSlotSize;
}

// One of the longest runs. From now on nobody takes its slots.
Hole begin_hole() {
  os::LockGuard guard(page_lock);
  const SlabHeader* run = longest_run(kLeastHole, may_be_hole);
  if (run == nullptr) return {};
  const Hole hole = {region_of(run), slot_of(run), run->slots};
  begin_purging(hole.region, hole.first, hole.slots);
  set_hole(hole, true);
  return hole;
}

// The slots are free again, and clean if their memory is gone.
void end_hole(const Hole& hole, bool gone) {
  os::LockGuard guard(page_lock);
  set_hole(hole, false);
  end_purging(hole.region, hole.first, hole.slots, gone);
}

// The bytes that it returned; 0: nothing is free, or the system refused. A fork meanwhile leaves the child a
// hole that may be mapped still: it can never fill that, which costs it address space.
size_t make_hole() {
  const Hole hole = os::kMustCommit ? Hole{} : begin_hole();
  if (hole.region == nullptr) return 0;
  os::Event event;
  if (!os::unmap(hole.start(), hole.size())) return end_hole(hole, false), 0;
  event.log("Free", hole.start(), hole.size(), -static_cast<ptrdiff_t>(hole.size()), "free slots: no room");
  return hole.size();
}

// The next one of so many slots, in the order of the regions, or none.
Hole find_hole(unsigned slots, const Hole& after) {
  os::LockGuard guard(page_lock);
  Region* region = after.region == nullptr ? regions : after.region;
  unsigned slot = after.first + after.slots;
  for (; region != nullptr && hole_slots != 0; region = region->next, slot = 0) {
    unsigned length = 0;
    for (; slot < region->huge_pages * kSlotsPerHugePage; ++slot) {
      if (is_hole(region, slot)) {
        ++length;
      } else if (length >= slots) {
        break;
      } else {
        length = 0;
      }
    }
    if (length >= slots) return {region, slot - length, length};
  }
  return {};
}

// As much of it as there is room for, but at least so many slots.
bool map_hole(Hole* hole, unsigned slots) {
  for (;; hole->slots = hole->slots / 2 > slots ? hole->slots / 2 : slots) {
    if (os::map_if_free(hole->start(), hole->size())) return true;
    if (hole->slots == slots) return false;
  }
}

}  // namespace

// With room for what is before a mapping, and for its alignment.
Room::Room(size_t wanted) : wanted_(wanted + 2 * kRegionSize) {}

bool Room::make() {
  if (!dropped_) {
    dropped_ = true;
    empty_caches();
    if (drop_all_kept()) return true;
  }
  if (give_up_guard(&guards_)) return true;
  const size_t made = wanted_ == 0 ? 0 : make_hole();
  wanted_ = made < wanted_ ? wanted_ - made : 0;
  return made != 0;
}

Added fill_hole(unsigned slots) {
  constexpr unsigned kMostTries = 4;
  Hole hole = {};
  for (unsigned tries = 0; tries < kMostTries; ++tries) {
    hole = find_hole(slots, hole);
    if (hole.region == nullptr) break;
    Hole part = hole;
    os::Event event;
    if (!map_hole(&part, slots)) continue;
    keep_small(part.start(), part.size());
    event.log("Alloc SP", part.start(), part.size(), static_cast<ptrdiff_t>(part.size()), "slots, again");
    end_hole(part, true);
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
