#include "observe/seen.h"

#include "slab/slab.h"

namespace hummock::observe {
namespace {

#define HUMMOCK_RACY __attribute__((no_sanitize("thread")))

HUMMOCK_RACY void look_at_slab(const SlabHeader* header, Seen* seen) {
  const uint64_t word = __atomic_load_n(&header->remote, __ATOMIC_RELAXED);
  const size_t used = (word & slab::kSharedBit) != 0 ? header->shared_live : header->live;
  const size_t back = slab::count_of(word);
  const uint32_t gone = header->gone.own | ((word & slab::kGone) != 0 ? header->gone.remote : 0u);
  const size_t touched = header->gone.touched * kSmallPage;
  seen->live_blocks = used > back ? used - back : 0;
  seen->purged = static_cast<size_t>(__builtin_popcount(gone)) * part_bytes(header);
  if (header->slots == 1 && touched < kSlotSize) seen->untouched = kSlotSize - touched;
}

}  // namespace

HUMMOCK_RACY Seen look_at(const SlabHeader* header) {
  Seen seen = {relaxed(header->kind), header->size_class, 0, 0, 0, header->bytes, header->home};
  if (!seen.is_slab()) return seen;
  if (seen.size_class == 0 || seen.size_class >= slab::kClasses) {  // it is being made
    seen.kind = Kind::free;
  } else {
    look_at_slab(header, &seen);
  }
  return seen;
}

}  // namespace hummock::observe
