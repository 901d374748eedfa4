// Free slots stand in *runs*: all that are adjacent in a region, across huge pages, are one. The first and
// the last header of a run say its length in `slots`. The first stands in the list of runs of about its
// length, and says in `listed` whether it is the list of those that have memory somewhere.
//
// A slot is in a run if its bit in HugePage::used is clear, but for the moment between a change of the bits
// and the call here that goes with it. page_lock is held in all of this.
#ifndef HUMMOCK_PAGES_RUNS_H
#define HUMMOCK_PAGES_RUNS_H

#include "pages/region.h"

namespace hummock::pages {

struct Place {
  SlabHeader* run;  // first header of the run; null: there is none
  unsigned first;   // slot
};

// Where so many slots go, the first at a multiple of `align`. At most 4 looks in each of 128 lists; where
// `align` is 1, and there are at most 32 slots, at the first in two.
Place find_place(unsigned slots, unsigned align);

// Slots leave the run that begins with `run`: they are used from now on. What is left of it are one or two.
void cut_run(SlabHeader* run, unsigned first, unsigned slots);

// Slots that are free from now on, with what is free on either side of them.
void join_run(Region* region, unsigned first, unsigned slots);

// The run that the free slot is in. At most 16 steps.
SlabHeader* run_of(Region* region, unsigned slot);

// The first slot of [first, end), which are free, that has memory; `end` if none has.
unsigned first_warm(const Region* region, unsigned first, unsigned end);

// A run from among the longest that have memory; null: there is none.
SlabHeader* longest_warm_run();

inline bool is_free(const Region* region, unsigned slot) {
  return (region->page[slot / kSlotsPerHugePage].used >> slot % kSlotsPerHugePage & 1) == 0;
}

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_RUNS_H
