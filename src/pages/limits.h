// Bounds of what the process may hold, which the user set: options limit_soft and limit_hard, in bytes or in
// percent of what its control group may have.
#ifndef HUMMOCK_PAGES_LIMITS_H
#define HUMMOCK_PAGES_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "pages/slab_header.h"

namespace hummock::pages {

// In effect, in bytes; 0: none. The soft one is not above the hard one. Atomic, relaxed: written by
// renew_limits.
struct Limits {
  size_t soft, hard;
};
extern Limits limits;

// Takes the options over, and where one is a percentage looks at the group's limit: three system calls, many
// the first time. After each change of an option.
void renew_limits();
// The same if it is due; true: it was.
bool renew_limits_in_turn(uint64_t now_ms);

// May so many bytes more be in use? Asked where spans and mappings are taken, so the fast path pays nothing.
// Where only the caches of spans stand in the way, they are emptied. False: counted as a refusal.
bool fits_hard_limit(size_t bytes);
inline bool may_take(size_t bytes) {
  return __builtin_expect(relaxed(limits.hard) == 0, true) || fits_hard_limit(bytes);
}
// The same once more under the page heap's lock, so that threads that were told yes at once do not pass the
// limit together.
bool still_fits(size_t bytes);

// How many slots may be dirty beside what is in use, where there is a soft limit.
size_t slots_within_limit();
// As much is in use as the soft limit says.
inline bool is_over_soft_limit() {
  return relaxed(limits.soft) != 0 && slots_within_limit() == 0;
}

// Requests that the hard limit refused.
size_t limit_refusals();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_LIMITS_H
