// Room where the system has none left: a call gives back what Hummock holds and does not use.
//
// A *hole* is free slots whose address space the process has returned. Headers are never in one, so a late
// look still finds a header. Its slots count as being purged until the hole is mapped again, if nobody else
// has mapped its place. Holes are made and filled with growth_lock held, so no fork comes between.
#ifndef HUMMOCK_PAGES_ROOM_H
#define HUMMOCK_PAGES_ROOM_H

#include <stddef.h>

namespace hummock::pages {

struct Region;

// For one request, of so many bytes. A call that grows the page heap holds growth_lock, others hold no lock.
class Room {
 public:
  Room(size_t wanted, bool growing) : wanted_(wanted), growing_(growing) {}
  // Gives back the next best thing: kept mappings; a guard, if mappings are what is lacking; long runs of
  // free slots. False: there is none, or it would not be enough.
  bool make();

 private:
  bool make_holes(size_t left);

  size_t wanted_;
  bool growing_;
  bool dropped_ = false;
  unsigned guards_ = 4;  // to give up
  size_t made_ = 0;      // of holes
};

struct Added {
  char* start;  // null: nothing
  size_t size;
};

// Maps a hole of so many slots, or a part of one. growth_lock is held. Null: there is none, or no room, or
// their places are taken.
Added fill_hole(unsigned slots);

// Returns a region's address space at the very end.
void unmap_but_holes(const Region* region);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_ROOM_H
