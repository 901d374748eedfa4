// All figures at once, for who asks inside the process.
#ifndef HUMMOCK_OBSERVE_SNAPSHOT_H
#define HUMMOCK_OBSERVE_SNAPSHOT_H

#include <stddef.h>

namespace hummock::observe {

// As hummock_stats_json.
size_t stats_json(char* out, size_t room);

// One line of JSON to the end of the file that the option stats names. A line to standard error when it
// cannot be had.
void append_stats();

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_SNAPSHOT_H
