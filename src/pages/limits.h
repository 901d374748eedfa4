// Bounds of what the process may hold, which the user set (options limit_soft and limit_hard).
#ifndef HUMMOCK_PAGES_LIMITS_H
#define HUMMOCK_PAGES_LIMITS_H

#include <stddef.h>

namespace hummock::pages {

// In effect, in bytes; 0: none. The soft one is not above the hard one.
size_t soft_limit();
size_t hard_limit();

// Takes them over; from the next call on they hold.
void set_limits(size_t soft, size_t hard);

// May so many bytes more be in use? Checked where spans and mappings are taken, so the fast path pays
// nothing. Where only the caches of spans stand in the way, they are emptied. False: counted as a refusal.
bool may_take(size_t bytes);

// How many slots may be dirty beside what is in use; SIZE_MAX: no limit says so.
size_t slots_within_limit();

// Requests that the hard limit refused.
size_t limit_refusals();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_LIMITS_H
