// A system that refuses at random places: by a seed, so that a thread's refusals are the same again.
#ifndef HUMMOCK_TESTS_CHAOS_REFUSE_H
#define HUMMOCK_TESTS_CHAOS_REFUSE_H

#include <stdint.h>

namespace refuse {

// From now on one in `n` of this thread's calls to the system fails, drawn from `seed`; 0: none. Without the
// prefixed library, nothing.
void one_in(unsigned n, uint64_t seed);
void install();

}  // namespace refuse

#endif  // HUMMOCK_TESTS_CHAOS_REFUSE_H
