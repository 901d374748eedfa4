// What the header of a slot says, as all who count read it; and what of the page heap's figures all of them
// have.
#ifndef HUMMOCK_OBSERVE_SEEN_H
#define HUMMOCK_OBSERVE_SEEN_H

#include "pages/metadata.h"
#include "pages/pages.h"

namespace hummock::observe {

// A slab, or a large block.
struct Seen {
  Kind kind;            // slab, own_slab or large; anything else: nothing to be counted
  unsigned size_class;  // of slabs, as are the next three
  size_t live_blocks;   // handed out, or in a thread's cache
  size_t purged;        // bytes of pages that were given back
  size_t untouched;     // bytes that the allocator has never touched
  size_t bytes;         // of the slab, or of the block
  const heap::UserHeap* heap;
  bool is_slab() const { return kind == Kind::slab || kind == Kind::own_slab; }
};

// Reads the header while its owner writes it: a figure may be late, nothing is followed.
Seen look_at(const SlabHeader* header);

// Of hummock_stats_t or hummock_figures_t: what is the page heap's alone, and very large blocks.
template <class Figures>
void copy_totals(const pages::Totals& totals, Figures* out) {
  out->large_blocks += totals.huge_blocks;
  out->large_bytes += totals.huge_bytes;
  out->dirty = totals.dirty;
  out->mapped = totals.mapped;
  out->peak = totals.peak;
  out->purged = totals.purged;
  out->huge_pinned = totals.pinned;
  out->huge_advised = totals.advised;
  out->huge_refusals = totals.refusals;
  out->metadata = pages::metadata_bytes();
}

// What live blocks stand in, when so many bytes of it were given back from inside slabs.
inline size_t committed_bytes(const pages::Totals& totals, size_t purged) {
  const size_t used = totals.used + totals.huge_bytes;
  return used > purged ? used - purged : 0;
}

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_SEEN_H
