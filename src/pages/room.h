// Where a span of more than 2 MiB goes.
#ifndef HUMMOCK_PAGES_ROOM_H
#define HUMMOCK_PAGES_ROOM_H

#include "pages/region.h"

namespace hummock::pages {

// A place for a span, at one end of a run of adjacent free slots of a region, across huge pages.
struct Room {
  Region* region;  // null: there is none
  unsigned first;
  unsigned run;   // slots of the run
  unsigned warm;  // slots of the place that have memory
};

// Where such a span went back last: it is looked at first. Guarded by page_lock.
extern Region* last_given;

// The best room of the first regions that have any. page_lock is held. At most a few hundred steps, and one a
// region that has no run of the length.
Room find_room(unsigned slots);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_ROOM_H
