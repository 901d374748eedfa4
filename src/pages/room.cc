#include "pages/room.h"

namespace hummock::pages {

Region* last_given;

namespace {

constexpr unsigned kLookAt = 8;  // regions, from the first that has room

// What is left of a run is less useful than the run; a slot without memory will be touched afresh.
constexpr unsigned kCleanCost = 4;
constexpr unsigned kGoodShare = 8;  // what costs so little is taken at once
unsigned cost(const Room& room, unsigned slots) {
  return room.run - slots + (slots - room.warm) * kCleanCost;
}

unsigned count_bits(uint32_t bits) {
  return base::count_in(bits, ~uint32_t{0}, kSlotsPerHugePage);  // most often all or none
}

// Slots of [first, first + slots) that are free and have memory. `before[n]`: those in huge pages below n.
unsigned count_warm(const Region* region, const uint16_t* before, unsigned first, unsigned slots) {
  const auto below = [&](unsigned slot) -> unsigned {
    const unsigned n = slot / kSlotsPerHugePage;
    const uint32_t low = base::low_mask(slot % kSlotsPerHugePage);
    return low == 0 ? before[n] : before[n] + count_bits(region->page[n].warm() & low);
  };
  return below(first + slots) - below(first);
}

// Improves *best by the region's rooms, at either end of each free run: where there is more memory, else
// where a huge page is broken already.
void look_in(Region* region, unsigned slots, Room* best) {
  uint16_t before[kHugePages + 1];
  unsigned first = 0, length = 0, longest = 0, warm = 0;
  const auto end_run = [&] {
    if (length > longest) longest = length;
    if (length < slots) return;
    const unsigned last = first + length - slots;
    const Room low = {region, first, length, count_warm(region, before, first, slots)};
    const Room high = {region, last, length, count_warm(region, before, last, slots)};
    const bool at_end = high.warm > low.warm || (high.warm == low.warm && first % kSlotsPerHugePage == 0);
    const Room& room = at_end ? high : low;
    if (best->region == nullptr || cost(room, slots) < cost(*best, slots)) *best = room;
  };
  for (unsigned n = 0; n < region->huge_pages; ++n) {
    const HugePage& page = region->page[n];
    before[n] = static_cast<uint16_t>(warm);
    warm += count_bits(page.warm());
    before[n + 1] = static_cast<uint16_t>(warm);
    if (page.used == 0) {
      length += kSlotsPerHugePage;
      continue;
    }
    length += static_cast<unsigned>(__builtin_ctz(page.used));
    end_run();
    length = static_cast<unsigned>(__builtin_clz(page.used));
    first = (n + 1) * kSlotsPerHugePage - length;
  }
  end_run();
  region->longest = longest;
}

}  // namespace

// Where there is no memory to be found, the first region that has room is as good as any.
Room find_room(unsigned slots) {
  Room best = {};
  Region* last = last_given;
  if (last != nullptr && last->longest >= slots) look_in(last, slots, &best);
  unsigned looked = 0;
  for (Region* region = regions; region != nullptr && looked < kLookAt; region = region->next) {
    if (best.region != nullptr && (relaxed(dirty_slots) == 0 || cost(best, slots) <= slots / kGoodShare))
      break;
    if (region == last || region->longest < slots) continue;
    look_in(region, slots, &best);
    if (best.region != nullptr) ++looked;
  }
  return best;
}

}  // namespace hummock::pages
