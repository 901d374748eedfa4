// A *run* is all free slots that are adjacent in a region, across huge pages. The first and the last header
// of a run have its length in `slots`. The first is in the list of runs of about its length that have memory
// somewhere, or of those that have none. A hole (pages/room.h) is kept as a run of its own kind.
//
// A slot is in a run if its bit in HugePage::used is clear, except between a change of the bits and the call
// of cut_run or join_run that belongs to it. page_lock is held for all of this.
#ifndef HUMMOCK_PAGES_RUNS_H
#define HUMMOCK_PAGES_RUNS_H

#include "pages/region.h"

namespace hummock::pages {

struct Place {
  SlabHeader* run;  // first header of the run; null: there is none
  unsigned first;   // slot
};

// Finds a place for so many slots, the first at a multiple of `align`. At most 4 looks in each of 128 lists;
// for `align` 1 and at most 32 slots, a look at the first runs of two lists.
Place find_place(unsigned slots, unsigned align);

// Takes slots, which are used from now on, out of the run or hole that begins with `run`. Leaves up to two
// shorter ones.
void cut_run(SlabHeader* run, unsigned first, unsigned slots);

// Joins slots that are free from now on with the free slots on both sides.
void join_run(Region* region, unsigned first, unsigned slots);

// The run that contains the free slot. At most 16 steps.
SlabHeader* run_of(Region* region, unsigned slot);

// Of the free slots [first, end), the first that has memory; `end` if none has.
unsigned first_warm(const Region* region, unsigned first, unsigned end);

// One of the longest runs that have memory; null: there is none.
SlabHeader* longest_warm_run();

// The slots of all runs of so many or more; of 1,024 of them, where there are more.
size_t slots_in_runs(unsigned least);

// One of the longest runs of so many slots or more that `may` agrees to, of the first few of each length.
const SlabHeader* longest_run(unsigned least, bool (*may)(const SlabHeader* run));

// Joins slots that are a hole from now on with the holes on both sides.
void join_hole(Region* region, unsigned first, unsigned slots);

// The first headers of all holes of so many slots, and of some that are a little shorter. Null: the first
// one; null is returned after the last.
SlabHeader* next_hole(unsigned slots, const SlabHeader* after);

inline bool is_free(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].used >> slot % kSlotsPerHugePage & 1) == 0;
}

inline bool is_hole(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].holes >> slot % kSlotsPerHugePage & 1) != 0;
}

inline bool is_partial(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].partial >> slot % kSlotsPerHugePage & 1) != 0;
}

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_RUNS_H
