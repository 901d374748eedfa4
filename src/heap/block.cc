#include "heap/block.h"

#include <errno.h>

#include "heap/diagnose.h"
#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "heap/limit_notice.h"
#include "heap/magazine.h"
#include "heap/modes.h"
#include "heap/refill.h"
#include "os/os.h"

namespace hummock::heap {

Block find_block(const char* call, const void* p) {
  SlabHeader* header = pages::find_slab(p);
  if (header == nullptr) bad_pointer(call, p);
  switch (kind_of(header)) {
    case Kind::slab:
      check_live(call, header, p);
      return {header, slab::row_of(header).block_size, nullptr};
    case Kind::own_slab:
      check_live(call, header, p);
      return {header, slab::row_of(header).block_size, relaxed(header->user)};
    case Kind::large:
    case Kind::huge:
    case Kind::guarded:
      if (p == header->start) return {header, header->bytes, header->user};
      bad_pointer(call, p);
    default:
      bad_pointer(call, p);
  }
}

void* no_memory() {
  tell_of_limits();
  errno = ENOMEM;
  return nullptr;
}

size_t good_size(size_t size) {
  if (size == 0) size = 1;
  if (size <= slab::kMaxSmall) return slab::kTable.row[slab::class_of(size)].block_size;
  if (size > size_t{PTRDIFF_MAX} - kRegionSize) return 0;
  return base::align_up(size, size <= pages::kMaxSpanSlots * kSlotSize ? kSlotSize : os::page_size());
}

bool owns(const void* p) {
  const SlabHeader* header = pages::find_header(p);
  return (header != nullptr && is_in_use(header)) || modes::served::owns(p);
}

void count_resting(uint32_t* per_class) {
  for (unsigned c = 0; c < slab::kClasses; ++c)
    per_class[c] = c == 0 ? 0 : static_cast<uint32_t>(count_at_hand(thread_heap, c));
  const slab::OwnPurge& purge = thread_heap->own_purge;
  if (purge.slab() != nullptr) per_class[purge.slab()->size_class] += purge.held();
  count_parked(per_class);
}

bool trim(size_t keep) {
  if (thread_heap->attached) {
    flush_magazines(thread_heap);
    purge_slabs(thread_heap);
  }
  give_up_parked();
  purge_idle();
  return pages::purge_all(keep);
}

}  // namespace hummock::heap
