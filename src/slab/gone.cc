#include "slab/gone.h"

#include "base/bits.h"
#include "slab/block_set.h"

namespace hummock::slab {

void add_pages(const SlabHeader* slab, uint16_t pages, BlockSet* set) {
  for_pages(pages, [&](unsigned page) { set->add_all(range_in_page(slab, page)); });
}

uint16_t free_pages(const SlabHeader* slab, const BlockSet& set) {
  const size_t part = part_bytes(slab), size = row_of(slab).block_size, skipped = offset_of(slab, 0);
  unsigned pages = 0;
  size_t first = 0;
  for (unsigned page = 0; page < kPages; ++page) {
    const size_t end = first_from(slab, (page + 1) * part);
    const bool reaches = first > 0 && skipped + first * size > page * part;
    const Range range = {reaches ? first - 1 : first, end};
    if (range.first != end && set.has_all(range)) pages |= 1u << page;
    first = end;
  }
  return static_cast<uint16_t>(pages);
}

uint16_t with_blocks(const SlabHeader* slab, uint16_t pages) {
  unsigned with = 0;
  for_pages(pages, [&](unsigned page) {
    const Range range = range_in_page(slab, page);
    if (range.first != range.end) with |= 1u << page;
  });
  return static_cast<uint16_t>(with);
}

bool can_purge(const SlabHeader* slab, unsigned pages) {
  constexpr int kSplitPages = kPages / 4;
  if (pages == 0 || pages::can_purge_inside(slab)) return pages != 0;
  return __builtin_popcount(pages) >= kSplitPages && pages::split_huge_page(slab);
}

void note_gone(const SlabHeader* slab, uint32_t blocks) {
  pages::note_untouched(static_cast<ptrdiff_t>(size_t{blocks} * row_of(slab).block_size));
}

namespace {

constexpr size_t kBlocksPerSet = 80;
static_assert(kBlocksPerSet <= kLeastSlice);

}  // namespace

bool pay_for_set(Slice* slice) {
  const bool suffices = slice->blocks >= kBlocksPerSet;
  slice->blocks -= suffices ? kBlocksPerSet : slice->blocks;
  return suffices;
}

uint16_t take_pages(uint16_t* pages, Slice* slice) {
  unsigned calls = slice->calls;
  const uint16_t taken = pages::pages_within(*pages, &calls);
  slice->calls -= calls;
  *pages = static_cast<uint16_t>(*pages & ~unsigned{taken});
  return taken;
}

HUMMOCK_RACY bool seems_free(const SlabHeader* slab, size_t bytes) {
  const size_t part = part_bytes(slab), size = row_of(slab).block_size;
  const unsigned gone = gone_pages(slab);
  size_t left = base::divide_up(bytes, part);
  for (unsigned page = 0; page < kPages && left != 0; ++page) {
    const Range range = range_in_page(slab, page);
    if (range.end > slab->carved) break;
    if ((gone >> page & 1) != 0 || range.first == range.end) continue;
    size_t number = range.first;
    while (number != range.end && looks_free(slab->start + number * size)) ++number;
    left -= number == range.end;
  }
  return left == 0;
}

uint32_t count_gone(const SlabHeader* slab, uint16_t pages) {
  const size_t part = part_bytes(slab);
  size_t count = 0;
  for (uint32_t left = pages; left != 0;) {
    const unsigned first = base::lowest_bit(left);
    const uint32_t after = left + (1u << first);  // the carry ends behind the run of ones
    count += first_from(slab, base::lowest_bit(after) * part) - first_from(slab, first * part);
    left &= after;
  }
  return static_cast<uint32_t>(count);
}

}  // namespace hummock::slab
