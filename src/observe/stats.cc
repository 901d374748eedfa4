#include "observe/stats.h"

#include <string.h>

#include "heap/allowance.h"
#include "heap/user.h"
#include "modes/served.h"
#include "observe/seen.h"
#include "os/os.h"

namespace hummock::observe {
namespace {

struct Sum {
  hummock_stats_t* out;
  size_t purged;  // bytes of pages inside slabs that were given back
};

void visit(const SlabHeader* header, void* context) {
  auto* sum = static_cast<Sum*>(context);
  const Seen seen = look_at(header);
  if (seen.kind == Kind::large) {
    sum->out->large_blocks += 1;
    sum->out->large_bytes += seen.bytes;
  } else if (seen.is_slab()) {
    hummock_class_stats_t& row = sum->out->per_class[seen.size_class];
    row.slabs += 1;
    row.live_blocks += seen.live_blocks;
    sum->purged += seen.purged;
  }
}

}  // namespace

void collect(hummock_stats_t* out) {
  const size_t size = out->size;
  memset(out, 0, sizeof *out);
  out->size = size;
  for (unsigned c = 0; c < slab::kClasses; ++c) out->per_class[c].block_size = slab::kTable.row[c].block_size;
  out->classes = slab::kClasses;
  Sum sum = {out, 0};
  pages::visit_headers(visit, &sum);
  const pages::Totals totals = pages::totals();
  copy_totals(totals, out);
  out->live = out->large_bytes;
  uint32_t resting[slab::kClasses];
  heap::count_resting(resting);
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    hummock_class_stats_t& row = out->per_class[c];
    row.live_blocks -= resting[c] < row.live_blocks ? resting[c] : row.live_blocks;
    out->live += row.live_blocks * row.block_size;
  }
  out->committed = committed_bytes(totals, sum.purged);
  out->resident = os::resident_bytes() + totals.pinned;  // which the system counts apart
  out->threads = heap::count_threads();
  out->heaps = heap::count_user_heaps();
  modes::served::add_figures(out);
}

}  // namespace hummock::observe
