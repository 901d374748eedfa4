#include "heap/large.h"

#include <string.h>

#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "os/os.h"
#include "pages/limits.h"

namespace hummock::heap {
namespace {

constexpr size_t kMaxSpanBytes = pages::kMaxSpanSlots * kSlotSize;
constexpr size_t kWorthAMapping = size_t{4} << 20;  // for a block that grows and has no room behind it
constexpr size_t kCreeping = size_t{128} << 10;     // the same if it grows by little and much memory is dirty

unsigned slots_of(size_t size) {
  return size == 0 ? 1 : static_cast<unsigned>(base::divide_up(size, kSlotSize));
}

// A block that grows in small steps would be copied at each step, and leave a hole too short for similar
// blocks. In a mapping of its own it takes its memory along.
bool creeps(size_t room, size_t size) {
  return size >= kCreeping && size >= room && size - room <= room / 8;
}

// The region's first huge page has the headers and its last one the guard, so neither holds an aligned block.
bool fits_in_region(size_t size, size_t align) {
  if (align <= kSlotSize) return size <= kMaxSpanBytes;
  const size_t first = align < pages::kHugePageSize ? pages::kHugePageSize : align;
  return first < kRegionSize - pages::kHugePageSize && size <= kRegionSize - first - pages::kHugePageSize;
}

SlabHeader* take(size_t size, size_t align, bool* zeroed) {
  if (!fits_in_region(size, align)) return pages::allocate_huge(size, align, zeroed);
  const unsigned align_slots = align <= kSlotSize ? 1 : static_cast<unsigned>(align / kSlotSize);
  const pages::Span span = pages::allocate_span(slots_of(size), align_slots);
  if (span.header == nullptr) {
    if (!pages::may_still_take(size)) return nullptr;
    // Where address space is short, a mapping takes no more than the block.
    return pages::allocate_huge(good_size(size), align, zeroed);
  }
  *zeroed = span.zeroed;
  span.header->partial = false;
  set_relaxed(span.header->kind, Kind::large);
  return span.header;
}

void account(UserHeap* owner, SlabHeader* header) {
  set_relaxed(header->user, owner);
  if (owner != nullptr) owner->large.push_front(header);
}

}  // namespace

void* allocate_large(UserHeap* owner, size_t size, size_t align, bool* zeroed) {
  if (size > size_t{PTRDIFF_MAX} - align) return nullptr;
  SlabHeader* header = take(size, align, zeroed);
  if (header == nullptr && give_up_parked()) header = take(size, align, zeroed);
  if (header == nullptr) return nullptr;
  account(owner, header);
  return header->start;
}

void claimed_before(const char* call, const void* start) {
  base::die(base::Line() << call << "(" << start
                         << "): double free: another thread freed the block at the same time"
                         << slab::see_more());
}

Kind claim_large(const char* call, SlabHeader* header) {
  if (kind_of(header) != Kind::huge) return claim_span(call, header), Kind::large;
  const void* start = header->start;
  if (!pages::leave_mapping(start)) claimed_before(call, start);
  return Kind::huge;
}

void release_far(SlabHeader* header, Kind kind) {
  kind == Kind::huge ? pages::release_huge(header) : pages::release_span(header);
  // For a span, free just returned what exceeds the budget.
  if (kind == Kind::huge ? tick_pending() : pages::is_behind()) tick(kCallsAfterFree);
}

void free_far(const char* call, SlabHeader* header) {
  claim_span(call, header);
  release_far(header, Kind::large);
}

void keep_elsewhere(SlabHeader* header, unsigned entry, SlabHeader* before) {
  SlabHeader* other = pages::keep_in_other(entry, before, header);
  if (other != nullptr) release_far(other, Kind::large);
}

void release_large(SlabHeader* header, Kind kind) {
  if (UserHeap* owner = header->user) {
    owner->large.remove(header);
    header->user = nullptr;
  }
  release_far(header, kind);
}

void clear_large(SlabHeader* header, size_t kept) {
  char* start = header->start + kept;
  char* end = header->start + header->bytes;
  char* inside = start + (base::align_up(kept, os::page_size()) - kept);
  // A program may use little of a very large block: memory that is not there needs no zeroing.
  const bool gone = kind_of(header) == Kind::huge && !os::kMustCommit &&
                    os::purge(inside, static_cast<size_t>(end - inside));
  memset(start, 0, static_cast<size_t>((gone ? inside : end) - start));
}

namespace {

SlabHeader* resize_span(SlabHeader* header, size_t size, bool may_move) {
  if (size > kMaxSpanBytes) return may_move ? pages::move_to_huge(header, size) : nullptr;
  const unsigned slots = slots_of(size);
  if (slots < header->slots) {
    pages::shrink_span(header, slots);
  } else if (slots > header->slots && !pages::grow_span(header, slots)) {
    const bool worth = size >= kWorthAMapping || (creeps(header->bytes, size) && pages::has_much_dirty());
    return worth && may_move ? pages::move_to_huge(header, size) : nullptr;
  }
  return header;
}

void* resize(SlabHeader* header, size_t size, bool may_move) {
  const bool is_huge = kind_of(header) == Kind::huge;
  if (is_huge ? size < kWorthAMapping && !creeps(header->bytes, size) : size <= slab::kMaxSmall)
    return nullptr;
  const Kind kind = claim_large("realloc", header);
  SlabHeader* now =
      kind == Kind::huge ? pages::resize_huge(header, size, may_move) : resize_span(header, size, may_move);
  if (now == nullptr || now == header)
    kind == Kind::huge ? pages::enter_mapping(header->start) : set_relaxed(header->kind, kind);
  return now == nullptr ? nullptr : now->start;
}

}  // namespace

void* resize_large(SlabHeader* header, size_t size, bool may_move) {
  if (size > size_t{PTRDIFF_MAX}) return nullptr;
  UserHeap* owner = header->user;
  if (owner == nullptr) return resize(header, size, may_move);
  os::LockGuard guard(owner->lock);
  return resize(header, size, false);  // what moves would leave the heap's list
}

}  // namespace hummock::heap
