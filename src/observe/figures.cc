#include "observe/figures.h"

#include <string.h>

#include "base/options.h"
#include "base/text.h"
#include "heap/allowance.h"
#include "heap/slow_time.h"
#include "heap/tag.h"
#include "heap/user.h"
#include "modes/served.h"
#include "os/os.h"
#include "pages/limits.h"

namespace hummock::observe {
namespace {

static_assert(slab::kClasses - 1 <= HUMMOCK_PAGE_CLASSES);
static_assert(options::kCount <= HUMMOCK_PAGE_OPTIONS);
static_assert(heap::kTags == HUMMOCK_PAGE_TAGS && heap::kTimeBuckets == HUMMOCK_PAGE_TIMES);

void begin_row(hummock_page_heap_t* row, const heap::UserHeap* heap, uint64_t number) {
  row->number = number;
  base::copy_printable(heap->name, row->name, sizeof row->name);
}

HUMMOCK_RACY void list_threads(hummock_figures_t* out) {
  for (const heap::Heap* heap = heap::all_heaps(); heap != nullptr; heap = heap->next_record) {
    if (!heap->attached || heap->forks != heap::forks) continue;
    out->cached += heap->held;
    if (out->threads++ < HUMMOCK_PAGE_THREADS)
      out->thread[out->thread_count++] = {heap->thread_id, heap->held, heap->earned};
  }
}

// All of them at once: they come first, so that slabs find their heaps.
HUMMOCK_RACY void list_heaps(hummock_figures_t* out) {
  uint64_t number = 0;
  const heap::UserHeap* const first = heap::all_user_heaps();
  for (const heap::UserHeap* heap = first; heap != nullptr; heap = heap->next_record) ++number;
  for (const heap::UserHeap* heap = first; heap != nullptr; heap = heap->next_record, --number) {
    if (heap->life != heap::Life::used || heap->internal) continue;
    if (out->heaps++ < HUMMOCK_PAGE_HEAPS) begin_row(&out->heap[out->heap_count++], heap, number);
  }
}

// Numbers count from the oldest record: that of a heap is how many records are behind it. Null: it has no
// row.
hummock_page_heap_t* row_of_heap(hummock_figures_t* out, const heap::UserHeap* owner) {
  if (owner == nullptr || out->heap_count == 0) return nullptr;
  uint64_t number = 0;
  // From the first one: what a header leads to may be newer than what of it is seen here.
  for (const heap::UserHeap* heap = heap::all_user_heaps(); heap != nullptr; heap = heap->next_record)
    number = heap == owner || number != 0 ? number + 1 : 0;
  for (uint32_t i = 0; i < out->heap_count; ++i) {
    if (out->heap[i].number == number) return &out->heap[i];
  }
  return nullptr;
}

void add_to_heap(hummock_figures_t* out, const heap::UserHeap* owner, size_t live, size_t bytes) {
  hummock_page_heap_t* row = row_of_heap(out, owner);
  if (row == nullptr) return;
  row->live += live;
  row->bytes += bytes;
  row->slabs += 1;
}

void list_options(hummock_figures_t* out) {
  for (size_t i = 0; i < options::kCount; ++i) {
    hummock_page_option_t* row = &out->options[i];
    const char* name = options::kTable[i].name;
    memcpy(row->name, name, strnlen(name, sizeof row->name - 1));
    options::get(name, row->value, sizeof row->value);  // what does not fit is cut
  }
  out->option_count = options::kCount;
}

void list_tags(hummock_figures_t* out) {
  heap::TagTotal totals[heap::kTags];
  heap::sum_tags(totals);
  for (const heap::TagTotal& row : totals) {
    if (row.used) out->tags[out->tag_count++] = {row.tag, row.bytes, row.blocks};
    out->drawn_bytes += row.bytes;
    out->drawn_blocks += row.blocks;
    out->reused += row.reused;
  }
}

void list_times(hummock_figures_t* out) {
  for (unsigned i = 0; i < heap::kTimeBuckets; ++i) out->slow_calls[i] = relaxed(heap::slow_times.count[i]);
  out->slow_ns = relaxed(heap::slow_times.total_ns);
}

}  // namespace

void Gathering::begin(hummock_figures_t* out) {
  memset(out, 0, sizeof *out);
  out_ = out;
  position_ = pages::Headers();
  out->began = os::now_ns();
  out->class_count = slab::kClasses - 1;
  for (unsigned c = 1; c < slab::kClasses; ++c)
    out->classes[c - 1].block_size = slab::kTable.row[c].block_size;
  list_threads(out);
  list_heaps(out);
  list_options(out);
  list_tags(out);
  list_times(out);
  out->space_count = modes::served::list_spaces(out->space, HUMMOCK_PAGE_SPACES, &out->spaces);
}

void Gathering::count_slab(const Seen& slab) {
  hummock_page_class_t& row = out_->classes[slab.size_class - 1];
  row.slabs += 1;
  row.live_blocks += slab.live_blocks;
  row.bytes += slab.bytes;
  row.purged += slab.purged;
  row.untouched += slab.untouched;
  if (slab.kind == Kind::own_slab)
    add_to_heap(out_, slab.heap, slab.live_blocks * row.block_size, slab.bytes);
}

void Gathering::visit(const SlabHeader* header) {
  const Seen seen = look_at(header);
  if (seen.is_slab()) return count_slab(seen);
  if (seen.kind != Kind::large) return;
  out_->large_blocks += 1;
  out_->large_bytes += seen.bytes;
  add_to_heap(out_, seen.heap, seen.bytes, seen.bytes);
}

bool Gathering::step(unsigned slots) {
  for (; slots != 0; --slots) {
    const SlabHeader* header = position_.next();
    if (header == nullptr) return finish(), true;
    visit(header);
  }
  return false;
}

void Gathering::finish() {
  const pages::Totals totals = pages::totals();
  copy_totals(totals, out_);
  out_->live = out_->large_bytes;
  for (uint32_t i = 0; i < out_->class_count; ++i) {
    out_->live += out_->classes[i].live_blocks * out_->classes[i].block_size;
    out_->purged_pages += out_->classes[i].purged;
  }
  out_->reused += totals.reused;
  out_->committed = committed_bytes(totals, out_->purged_pages);
  out_->limit_soft = relaxed(pages::limits.soft);
  out_->limit_hard = relaxed(pages::limits.hard);
  out_->limit_refusals = pages::limit_refusals();
}

}  // namespace hummock::observe
