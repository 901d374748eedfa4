// Elements that are in no cache: fresh ones, the stack of returned ones, and ranges that caches gave back.
#include "proxy/proxy.h"

namespace hummock::proxy {
namespace {

constexpr unsigned kTagShift = 32;

uint32_t top_of(uint64_t returned) {
  return static_cast<uint32_t>(returned);
}
uint64_t with_top(uint64_t returned, uint32_t top) {
  return (((returned >> kTagShift) + 1) << kTagShift) | top;
}

// relaxed: who follows links that were changed meanwhile fails to exchange the top.
uint32_t link_of(const Pool& pool, uint32_t index) {
  return __atomic_load_n(&pool.links[index], __ATOMIC_RELAXED);
}
void set_link(const Pool& pool, uint32_t index, uint32_t link) {
  __atomic_store_n(&pool.links[index], link, __ATOMIC_RELAXED);
}

// In the memory of the first element.
struct Range {
  uint32_t next;  // index + 1 of the next range's first element
  uint32_t end;
};
Range* range_at(const Pool& pool, uint32_t index) {
  return reinterpret_cast<Range*>(element_at(pool, index));
}

// Fills `found` with the top of the stack, top first. Returns their number, and what stands below them: all
// of it right if nobody changed the stack meanwhile, which the caller's exchange shows.
unsigned walk(const Pool& pool, uint64_t seen, uint32_t* found, unsigned most, uint32_t* below) {
  unsigned count = 0;
  uint32_t link = top_of(seen);
  while (link != 0 && count < most) {
    found[count++] = link - 1;
    link = link_of(pool, link - 1);
  }
  *below = link;
  return count;
}

unsigned take_returned(Pool& pool, void** items, unsigned most) {
  uint32_t found[kBatch];
  // acquire, here and below: pairs with the release in give(), so that we see the links.
  uint64_t seen = __atomic_load_n(&pool.returned, __ATOMIC_ACQUIRE);
  while (top_of(seen) != 0) {
    uint32_t below = 0;
    const unsigned count = walk(pool, seen, found, most, &below);
    if (__atomic_compare_exchange_n(&pool.returned, &seen, with_top(seen, below), false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
      for (unsigned i = 0; i < count; ++i) items[count - 1 - i] = element_at(pool, found[i]);
      return count;
    }
  }
  return 0;
}

uint32_t take_range(Pool& pool, uint32_t most, uint32_t* first) {
  // relaxed: what counts is read again under the lock.
  if (__atomic_load_n(&pool.ranges, __ATOMIC_RELAXED) == 0) return 0;
  os::LockGuard guard(registry);
  if (pool.ranges == 0) return 0;
  const uint32_t start = pool.ranges - 1;
  Range* range = range_at(pool, start);
  const uint32_t length = range->end - start;
  const uint32_t taken = length < most ? length : most;
  range->end -= taken;
  *first = range->end;
  if (taken == length) __atomic_store_n(&pool.ranges, range->next, __ATOMIC_RELAXED);
  return taken;
}

}  // namespace

uint32_t take_fresh(Pool& pool, uint32_t most, uint32_t* first) {
  // relaxed: an element that was never used has no contents to be seen.
  uint32_t carved = __atomic_load_n(&pool.carved, __ATOMIC_RELAXED);
  while (carved != pool.elements) {
    const uint32_t left = pool.elements - carved;
    const uint32_t taken = left < most ? left : most;
    if (__atomic_compare_exchange_n(&pool.carved, &carved, carved + taken, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      *first = carved;
      return taken;
    }
  }
  return take_range(pool, most, first);
}

void give_range(Pool& pool, uint32_t first, uint32_t end) {
  if (first == end) return;
  uint32_t carved = end;
  if (__atomic_compare_exchange_n(&pool.carved, &carved, first, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    return;  // they were the last to be taken
  }
  *range_at(pool, first) = {pool.ranges, end};
  __atomic_store_n(&pool.ranges, first + 1, __ATOMIC_RELAXED);
}

unsigned take(Pool& pool, void** items, unsigned most) {
  if (const unsigned count = take_returned(pool, items, most)) return count;
  uint32_t first = 0;
  const uint32_t count = take_fresh(pool, most, &first);
  for (uint32_t i = 0; i < count; ++i) items[i] = element_at(pool, first + count - 1 - i);
  return count;
}

void give(Pool& pool, void* const* items, unsigned count) {
  uint32_t link = static_cast<uint32_t>(index_at(pool, items[0])) + 1;
  const uint32_t lowest = link - 1;
  for (unsigned i = 1; i < count; ++i) {
    const auto index = static_cast<uint32_t>(index_at(pool, items[i]));
    set_link(pool, index, link);
    link = index + 1;
  }
  uint64_t seen = __atomic_load_n(&pool.returned, __ATOMIC_RELAXED);
  do {
    set_link(pool, lowest, top_of(seen));
    // release: pairs with the acquire in take_returned().
  } while (!__atomic_compare_exchange_n(&pool.returned, &seen, with_top(seen, link), true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

}  // namespace hummock::proxy
