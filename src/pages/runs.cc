#include "pages/runs.h"

namespace hummock::pages {
namespace {

using List = base::List<SlabHeader, &SlabHeader::next, &SlabHeader::prev>;

// One for each length to 32, then eight a doubling.
constexpr unsigned kBins = 64;
constexpr unsigned bin_of(unsigned slots) {
  if (slots <= 32) return slots - 1;
  const unsigned doubling = base::log2_floor(slots - 1);
  return 32 + (doubling - 5) * 8 + ((slots - 1) >> (doubling - 3)) % 8;
}
static_assert(bin_of(33) == 32 && bin_of(64) == 39 && bin_of(65) == 40 && bin_of(kSlotsPerRegion) == 63);

struct Lists {
  List of[kBins];
  uint64_t nonempty = 0;  // bit i: of[i] has a member
};
enum RunKind : uint8_t { kClean, kWarm, kHole };  // without memory, with some, without addresses
constexpr RunKind kFree[] = {kClean, kWarm};
constinit Lists lists[3];

constexpr unsigned kLookAt = 4;  // runs of a list: those of one length, or aligned alike, need no second look

// A slot without memory will be touched afresh, which costs as much as four slots left of a run.
constexpr unsigned kCleanCost = 4;

bool is_warm(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].warm() >> slot % kSlotsPerHugePage & 1) != 0;
}

void enlist(Region* region, unsigned first, unsigned slots, bool is_hole) {
  SlabHeader* run = region->header(first);
  run->slots = (run + slots - 1)->slots = static_cast<uint16_t>(slots);
  const bool warm = !is_hole && first_warm(region, first, first + slots) != first + slots;
  run->run_kind = is_hole ? kHole : warm ? kWarm : kClean;
  const unsigned bin = bin_of(slots);
  Lists& all = lists[run->run_kind];
  all.of[bin].push_front(run);
  all.nonempty |= uint64_t{1} << bin;
}

void unlist(SlabHeader* run) {
  const unsigned bin = bin_of(run->slots);
  Lists& all = lists[run->run_kind];
  all.of[bin].remove(run);
  if (all.of[bin].empty()) all.nonempty &= ~(uint64_t{1} << bin);
}

template <class IsAlike>
void join(Region* region, unsigned first, unsigned slots, bool is_hole, IsAlike is_alike) {
  const unsigned next = first + slots;
  if (next < region->huge_pages * kSlotsPerHugePage && is_alike(region, next)) {
    SlabHeader* after = region->header(next);
    unlist(after);
    slots += after->slots;
  }
  if (is_alike(region, first - 1)) {
    const unsigned before = region->header(first - 1)->slots;
    first -= before;
    slots += before;
    unlist(region->header(first));
  }
  enlist(region, first, slots, is_hole);
}

SlabHeader* find_run(const Lists& all, unsigned slots, unsigned align) {
  const unsigned least = bin_of(slots);
  for (uint64_t bins = all.nonempty >> least << least; bins != 0; bins &= bins - 1) {
    SlabHeader* run = all.of[__builtin_ctzll(bins)].front();
    for (unsigned looked = 0; run != nullptr && looked < kLookAt; run = run->next, ++looked) {
      const unsigned first = slot_of(run);
      if (base::align_up(first, align) - first + slots <= run->slots) return run;
    }
  }
  return nullptr;
}

// At that end of the run which has memory. If both or none: a single slot, a slab's most often, at the end,
// since what stands before the run may grow; others where a huge page is broken already.
unsigned place_in(SlabHeader* run, unsigned slots) {
  const unsigned first = slot_of(run);
  if (run->slots == slots) return first;
  const Region* region = region_of(run);
  const unsigned end = first + run->slots, last = end - slots;
  const bool warm = run->run_kind == kWarm, low = warm && is_warm(region, first),
             high = warm && is_warm(region, end - 1);
  if (low != high) return low ? first : last;
  if (warm && !low) {
    const unsigned inside = first_warm(region, first, end);
    return inside < last ? inside : last;
  }
  const bool breaks = first % kSlotsPerHugePage == 0 && end % kSlotsPerHugePage != 0;
  return slots == 1 || breaks ? last : first;
}

}  // namespace

unsigned first_warm(const Region* region, unsigned first, unsigned end) {
  while (first < end) {
    const unsigned bit = first % kSlotsPerHugePage;
    const uint32_t warm = region->page[first / kSlotsPerHugePage].warm() >> bit;
    if (warm != 0) {
      first += static_cast<unsigned>(__builtin_ctz(warm));
      break;
    }
    first += kSlotsPerHugePage - bit;
  }
  return first < end ? first : end;
}

SlabHeader* longest_warm_run() {
  const Lists& all = lists[kWarm];
  return all.nonempty == 0 ? nullptr : all.of[63 - __builtin_clzll(all.nonempty)].front();
}

size_t slots_in_runs(unsigned least) {
  constexpr unsigned kMostLooks = 1024;
  size_t slots = 0;
  unsigned looks = 0;
  for (const RunKind kind : kFree) {
    for (unsigned bin = kBins; bin-- > bin_of(least);) {
      for (const SlabHeader* run = lists[kind].of[bin].front(); run != nullptr; run = run->next) {
        if (++looks > kMostLooks) return slots;
        slots += run->slots;
      }
    }
  }
  return slots;
}

const SlabHeader* longest_run(unsigned least, bool (*may)(const SlabHeader* run)) {
  uint64_t bins = (lists[kClean].nonempty | lists[kWarm].nonempty) >> bin_of(least) << bin_of(least);
  while (bins != 0) {
    const auto bin = static_cast<unsigned>(63 - __builtin_clzll(bins));  // size_t may be shorter
    bins ^= uint64_t{1} << bin;
    for (const RunKind kind : kFree) {
      const SlabHeader* run = lists[kind].of[bin].front();
      for (unsigned looked = 0; run != nullptr && looked < kLookAt; run = run->next, ++looked) {
        if (may(run)) return run;
      }
    }
  }
  return nullptr;
}

Place find_place(unsigned slots, unsigned align) {
  SlabHeader* run = find_run(lists[kWarm], slots, align);
  if (run == nullptr || run->slots - slots > 0) {
    SlabHeader* clean = find_run(lists[kClean], slots, align);
    if (run == nullptr || (clean != nullptr && run->slots > clean->slots + slots * kCleanCost)) run = clean;
  }
  if (run == nullptr) return {nullptr, 0};
  return {run,
          align == 1 ? place_in(run, slots) : static_cast<unsigned>(base::align_up(slot_of(run), align))};
}

void cut_run(SlabHeader* run, unsigned first, unsigned slots) {
  Region* region = region_of(run);
  const unsigned begin = slot_of(run), end = begin + run->slots;
  const bool is_hole = run->run_kind == kHole;
  unlist(run);
  if (begin < first) enlist(region, begin, first - begin, is_hole);
  if (first + slots < end) enlist(region, first + slots, end - first - slots, is_hole);
}

void join_run(Region* region, unsigned first, unsigned slots) {
  join(region, first, slots, false, is_free);
}

void join_hole(Region* region, unsigned first, unsigned slots) {
  join(region, first, slots, true, is_hole);
}

SlabHeader* next_hole(unsigned slots, const SlabHeader* after) {
  if (after != nullptr && after->next != nullptr) return after->next;
  const unsigned least = after == nullptr ? bin_of(slots) : bin_of(after->slots) + 1;
  const uint64_t bins = least == kBins ? 0 : lists[kHole].nonempty >> least << least;
  return bins == 0 ? nullptr : lists[kHole].of[__builtin_ctzll(bins)].front();
}

SlabHeader* run_of(Region* region, unsigned slot) {
  unsigned number = slot / kSlotsPerHugePage;
  uint32_t used = region->page[number].used & base::low_mask(slot % kSlotsPerHugePage);
  while (used == 0) used = region->page[--number].used;  // slot 0 is in use
  return region->header(number * kSlotsPerHugePage + static_cast<unsigned>(base::log2_floor(used)) + 1);
}

}  // namespace hummock::pages
