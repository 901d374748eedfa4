// Bounds of what the process may hold, which the user set: options limit_soft and limit_hard, in bytes or in
// percent of what its control group may have.
#ifndef HUMMOCK_PAGES_LIMITS_H
#define HUMMOCK_PAGES_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"

namespace hummock::pages {

inline bool has_limits() {
  return options::values.limit_soft != 0 || options::values.limit_hard != 0;
}

// In effect, in bytes; 0: none. The soft one is not above the hard one.
size_t soft_limit();
size_t hard_limit();

// Looks at the group's limit again, where an option is a percentage: three system calls, many the first time.
void renew_limits();
// The same if it is due; true: it was.
bool renew_limits_in_turn(uint64_t now_ms);

// May so many bytes more be in use? Asked where spans and mappings are taken, so the fast path pays nothing.
// Where only the caches of spans stand in the way, they are emptied. False: counted as a refusal.
bool fits_hard_limit(size_t bytes);
inline bool may_take(size_t bytes) {
  return options::values.limit_hard == 0 || fits_hard_limit(bytes);
}

// How many slots may be dirty beside what is in use; SIZE_MAX: no limit says so.
size_t slots_within_limit();
// More is in use than the soft limit.
bool is_over_soft_limit();

// Requests that the hard limit refused.
size_t limit_refusals();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_LIMITS_H
