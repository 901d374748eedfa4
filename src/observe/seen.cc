#include "observe/seen.h"

#include "slab/slab.h"

namespace hummock::observe {
namespace {

HUMMOCK_RACY void look_at_slab(const SlabHeader* header, Seen* seen) {
  const size_t touched = header->gone.touched * kSmallPage;
  seen->live_blocks = slab::count_live(header);
  seen->purged = static_cast<size_t>(__builtin_popcount(slab::gone_pages(header))) * part_bytes(header);
  if (header->slots == 1 && touched < kSlotSize) seen->untouched = kSlotSize - touched;
}

}  // namespace

HUMMOCK_RACY Seen look_at(const SlabHeader* header) {
  Seen seen = {kind_of(header), header->size_class, 0, 0, 0, header->bytes, header->user};
  if (!seen.is_slab()) return seen;
  if (seen.size_class == 0 || seen.size_class >= slab::kClasses) {  // it is being made
    seen.kind = Kind::free;
  } else {
    look_at_slab(header, &seen);
  }
  return seen;
}

}  // namespace hummock::observe
