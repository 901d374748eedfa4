// The figures of the process, gathered by looking at every slab.
#ifndef HUMMOCK_OBSERVE_STATS_H
#define HUMMOCK_OBSERVE_STATS_H

#include "hummock/hummock.h"

namespace hummock::observe {

// Fills all fields but `size`. Stops nobody: exact when nothing else runs.
void collect(hummock_stats_t* out);

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_STATS_H
