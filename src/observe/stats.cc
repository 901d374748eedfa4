#include "observe/stats.h"

#include <string.h>

#include "heap/heap.h"
#include "heap/served.h"
#include "os/os.h"
#include "pages/metadata.h"

namespace hummock::observe {
namespace {

struct Seen {
  hummock_stats_t* out;
  size_t gone;  // bytes of pages inside slabs that were given back
};

// Reads headers while their owners write them: a figure may be late, nothing is followed.
__attribute__((no_sanitize("thread"))) void visit(const SlabHeader* header, void* context) {
  auto* seen = static_cast<Seen*>(context);
  hummock_stats_t* out = seen->out;
  const Kind kind = header->kind;
  if (kind == Kind::large) {
    out->large_blocks += 1;
    out->large_bytes += header->bytes;
    out->live += header->bytes;
  } else if (kind == Kind::slab || kind == Kind::own_slab) {
    const uint64_t word = __atomic_load_n(&header->remote, __ATOMIC_RELAXED);
    const bool shared = (word & slab::kSharedBit) != 0;
    const size_t used = shared ? header->shared_live : header->live;
    const size_t back = slab::count_of(word);
    const size_t live = used > back ? used - back : 0;
    const uint32_t gone = header->gone.own | ((word & slab::kGone) != 0 ? header->gone.remote : 0u);
    seen->gone += static_cast<size_t>(__builtin_popcount(gone)) * part_bytes(header);
    hummock_class_stats_t& row = out->per_class[header->size_class];
    row.slabs += 1;
    row.live_blocks += live;
    out->live += live * slab::row_of(header).block_size;
  }
}

}  // namespace

void collect(hummock_stats_t* out) {
  const size_t size = out->size;
  memset(out, 0, sizeof *out);
  out->size = size;
  for (unsigned c = 0; c < slab::kClasses; ++c) out->per_class[c].block_size = slab::kTable.row[c].block_size;
  out->classes = slab::kClasses;
  Seen seen = {out, 0};
  pages::visit_headers(visit, &seen);
  uint32_t resting[slab::kClasses];
  heap::count_resting(resting);
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    hummock_class_stats_t& row = out->per_class[c];
    const size_t rest = resting[c] < row.live_blocks ? resting[c] : row.live_blocks;
    row.live_blocks -= rest;
    out->live -= rest * row.block_size;
  }
  const pages::Totals totals = pages::totals();
  out->large_blocks += totals.huge_blocks;
  out->large_bytes += totals.huge_bytes;
  out->live += totals.huge_bytes;
  out->committed = totals.used + totals.huge_bytes - (seen.gone < totals.used ? seen.gone : 0);
  out->dirty = totals.dirty;
  out->mapped = totals.mapped;
  out->peak = totals.peak;
  out->purged = totals.purged;
  out->huge_pinned = totals.pinned;
  out->huge_advised = totals.advised;
  out->huge_refusals = totals.refusals;
  out->metadata = pages::metadata_bytes();
  out->resident = os::resident_bytes() + totals.pinned;  // which the system counts apart
  heap::count_heaps(&out->threads, &out->heaps);
  heap::served::add_figures(out);
}

}  // namespace hummock::observe
