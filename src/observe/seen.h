// How all who count read a slot's header, and the figures of the page heap that all of them need.
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

// Fills in, for hummock_stats_t or hummock_figures_t, what belongs to the page heap alone, and very large
// blocks.
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

// Bytes that hold live blocks, when `purged` bytes were returned from inside slabs.
inline size_t committed_bytes(const pages::Totals& totals, size_t purged) {
  const size_t used = totals.used + totals.huge_bytes;
  return used > purged ? used - purged : 0;
}

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_SEEN_H
