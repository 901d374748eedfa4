// The user's bounds of what the process may hold: options limit_soft and limit_hard, in bytes or in percent
// of what the process's control group may have.
#ifndef HUMMOCK_PAGES_LIMITS_H
#define HUMMOCK_PAGES_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "pages/slab_header.h"

namespace hummock::pages {

// The limits in effect, in bytes; 0: none. The soft one is never above the hard one. Atomic, relaxed:
// renew_limits writes them.
struct Limits {
  size_t soft, hard;
};
extern Limits limits;

// Computes the limits from the options. For a percentage it reads the group's limit. Call it after each
// change of an option.
void renew_limits();
// Does a step of it, with at most four system calls; true: that was the last.
bool renew_limits_some();
// In the child of a fork: who renewed them is not there.
void forget_renewal();
// Does a step if one is due and *calls is four; true: it did.
bool renew_limits_in_turn(uint64_t now_ms, unsigned* calls);

// May so many more bytes be in use? Called where spans and mappings are taken, so the fast path pays nothing.
// If only the span caches are in the way, it empties them. False: no, and it counts as a refusal.
bool fits_hard_limit(size_t bytes);
inline bool may_take(size_t bytes) {
  return __builtin_expect(relaxed(limits.hard) == 0, true) || fits_hard_limit(bytes);
}
// The same question again, under the page heap's lock, so that threads that ask at once do not exceed the
// limit together.
bool still_fits_hard_limit(size_t bytes);
inline bool may_still_take(size_t bytes) {
  return __builtin_expect(relaxed(limits.hard) == 0, true) || still_fits_hard_limit(bytes);
}

// With a soft limit: how many slots may be dirty in addition to what is in use.
size_t slots_within_limit();
// Has use reached the soft limit?
inline bool is_over_soft_limit() {
  return relaxed(limits.soft) != 0 && slots_within_limit() == 0;
}

// How many requests the hard limit refused.
size_t limit_refusals();

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_LIMITS_H
