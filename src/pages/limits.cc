#include "pages/limits.h"

#include "pages/pages.h"
#include "pages/region.h"
#include "pages/span_cache.h"

namespace hummock::pages {
namespace {

// All atomic, relaxed: bounds, by which nothing else is ordered.
size_t soft;
size_t hard;
size_t refusals;

size_t in_use() {
  return relaxed(used_slots) * kSlotSize + relaxed(huge_bytes);
}

bool fits(size_t bytes, size_t limit) {
  const size_t used = in_use();
  return bytes <= limit && used <= limit - bytes;
}

// Cached spans count as used.
void empty_caches() {
  for (unsigned i = 0; i < kEntries; ++i) {
    if (SlabHeader* span = close_entry(i)) give_span(span);
  }
}

__attribute__((noinline)) bool may_take_slow(size_t bytes, size_t limit) {
  if (fits(bytes, limit)) return true;
  empty_caches();
  if (fits(bytes, limit)) return true;
  __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
  return false;
}

}  // namespace

size_t soft_limit() {
  return relaxed(soft);
}
size_t hard_limit() {
  return relaxed(hard);
}
size_t limit_refusals() {
  return relaxed(refusals);
}

void set_limits(size_t new_soft, size_t new_hard) {
  if (new_hard != 0 && (new_soft == 0 || new_soft > new_hard)) new_soft = new_hard;
  set_relaxed(soft, new_soft);
  set_relaxed(hard, new_hard);
}

bool may_take(size_t bytes) {
  const size_t limit = relaxed(hard);
  return limit == 0 || may_take_slow(bytes, limit);
}

size_t slots_within_limit() {
  const size_t limit = relaxed(soft);
  if (limit == 0) return SIZE_MAX;
  const size_t used = in_use();
  return used < limit ? (limit - used) / kSlotSize : 0;
}

}  // namespace hummock::pages
