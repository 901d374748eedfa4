// All figures at once, for who asks inside the process.
#ifndef HUMMOCK_OBSERVE_SNAPSHOT_H
#define HUMMOCK_OBSERVE_SNAPSHOT_H

#include <stddef.h>

namespace hummock::observe {

// As hummock_stats_json.
size_t stats_json(char* out, size_t room);

// Appends one line of JSON to the file that the option stats names. Prints a line on standard error when it
// cannot.
void append_stats();

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_SNAPSHOT_H
