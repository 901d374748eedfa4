#include "pages/limits.h"

#include "os/os.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/span_cache.h"

namespace hummock::pages {
namespace {

constexpr uint64_t kPauseMs = 1000;

// All atomic, relaxed: bounds, by which nothing else is ordered.
size_t group;  // what the group may have; 0: not looked at yet
uint64_t next_look;
size_t refusals;
bool looking;  // atomic: acquire by who looks, release when done; others go on with what is known

bool has_percentage() {
  return options::values.limit_soft < 0 || options::values.limit_hard < 0;
}

size_t in_bytes(int64_t value) {
  return value >= 0 ? static_cast<size_t>(value) : relaxed(group) / 100 * static_cast<size_t>(-value);
}

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

}  // namespace

size_t hard_limit() {
  return in_bytes(options::values.limit_hard);
}

size_t soft_limit() {
  const size_t soft = in_bytes(options::values.limit_soft);
  const size_t hard = hard_limit();
  return hard != 0 && (soft == 0 || soft > hard) ? hard : soft;
}

void renew_limits() {
  if (!has_percentage() || __atomic_exchange_n(&looking, true, __ATOMIC_ACQUIRE)) return;
  set_relaxed(group, os::group_limit());
  __atomic_store_n(&looking, false, __ATOMIC_RELEASE);
}

bool renew_limits_in_turn(uint64_t now) {
  if (!has_percentage() || now < relaxed(next_look)) return false;
  set_relaxed(next_look, now + kPauseMs);
  renew_limits();
  return true;
}

bool fits_hard_limit(size_t bytes) {
  const size_t limit = hard_limit();
  if (limit == 0 || fits(bytes, limit)) return true;
  empty_caches();
  if (fits(bytes, limit)) return true;
  __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
  return false;
}

size_t slots_within_limit() {
  const size_t limit = soft_limit();
  if (limit == 0) return SIZE_MAX;
  const size_t used = in_use();
  return used < limit ? (limit - used) / kSlotSize : 0;
}

bool is_over_soft_limit() {
  return has_limits() && slots_within_limit() == 0;
}

size_t limit_refusals() {
  return relaxed(refusals);
}

}  // namespace hummock::pages
