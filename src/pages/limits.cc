#include "pages/limits.h"

#include "base/options.h"
#include "os/os.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/span_cache.h"

namespace hummock::pages {

Limits limits;

namespace {

constexpr uint64_t kPauseMs = 1000;

uint64_t next_look;  // ms; atomic, relaxed: two threads that look at once are harmless
size_t refusals;     // atomic, relaxed
bool looking;        // atomic: acquire by who renews, release when done; others go on with what is known

bool has_percentage() {
  return options::values.limit_soft < 0 || options::values.limit_hard < 0;
}

size_t in_bytes(int64_t value, size_t group) {
  return value >= 0 ? static_cast<size_t>(value) : group / 100 * static_cast<size_t>(-value);
}

size_t in_use() {
  return relaxed(used_slots) * kSlotSize + relaxed(huge_bytes);
}

bool fits(size_t bytes, size_t limit) {
  const size_t used = in_use();
  return bytes <= limit && used <= limit - bytes;
}

}  // namespace

bool renew_limits_some() {
  if (__atomic_exchange_n(&looking, true, __ATOMIC_ACQUIRE)) return true;
  size_t group = 0;
  if (has_percentage() && !os::group_limit(&group)) {
    __atomic_store_n(&looking, false, __ATOMIC_RELEASE);
    return false;
  }
  const size_t hard = in_bytes(options::values.limit_hard, group);
  const size_t soft = in_bytes(options::values.limit_soft, group);
  set_relaxed(limits.hard, hard);
  set_relaxed(limits.soft, hard != 0 && (soft == 0 || soft > hard) ? hard : soft);
  __atomic_store_n(&looking, false, __ATOMIC_RELEASE);
  return true;
}

void forget_renewal() {
  looking = false;
}

void renew_limits() {
  while (!renew_limits_some()) {
  }
}

bool renew_limits_in_turn(uint64_t now, unsigned* calls) {
  if (!has_percentage() || now < relaxed(next_look) || *calls < kMostCalls) return false;
  *calls = 0;
  if (renew_limits_some()) set_relaxed(next_look, now + kPauseMs);
  return true;
}

bool fits_hard_limit(size_t bytes) {
  const size_t limit = relaxed(limits.hard);
  if (limit == 0 || fits(bytes, limit)) return true;
  empty_caches();
  if (fits(bytes, limit)) return true;
  __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
  return false;
}

bool still_fits_hard_limit(size_t bytes) {
  const size_t limit = relaxed(limits.hard);
  return limit == 0 || fits(bytes, limit);
}

size_t slots_within_limit() {
  const size_t limit = relaxed(limits.soft);
  const size_t used = in_use();
  return used < limit ? (limit - used) / kSlotSize : 0;
}

size_t limit_refusals() {
  return relaxed(refusals);
}

}  // namespace hummock::pages
