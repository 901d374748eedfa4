// Blocks above 64 KiB, and aligned ones that no class can serve.
#ifndef HUMMOCK_HEAP_LARGE_H
#define HUMMOCK_HEAP_LARGE_H

#include "heap/heap.h"
#include "heap/user.h"
#include "pages/span_cache.h"

namespace hummock::heap {

// `owner` is a first-class heap (locked by the caller) or null. *zeroed says whether it reads zero.
void* allocate_large(UserHeap* owner, size_t size, size_t align, bool* zeroed);

// Takes a block of at most kMaxNear bytes from the processor's near cache, for no first-class heap; null:
// none.
inline constexpr size_t kMaxNear = pages::kNearLengths * kSlotSize;
// Threads that take turns on a processor share its near cache.
inline unsigned near_cache(const Heap* heap) {
  return os::processor(heap->near_cache) % pages::kNearCaches;
}
inline SlabHeader* take_near(const Heap* heap, size_t size) {
  const auto slots = static_cast<unsigned>(base::divide_up(size, kSlotSize));
  return pages::take_near(near_cache(heap), slots);
}

// Claims the block for the caller's free or move: a span's kind is free from now on, and a huge block's start
// is no longer in the region map. A thread that comes second is reported.
[[noreturn]] void claimed_before(const char* call, const void* start);
inline void claim_span(const char* call, SlabHeader* header) {
  Kind kind = Kind::large, free = Kind::free;
  // Relaxed: nobody else looks at the block's fields from here on.
  if (!__atomic_compare_exchange(&header->kind, &kind, &free, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    claimed_before(call, header->start);
}
// Claims a block of either kind, and returns the kind.
Kind claim_large(const char* call, SlabHeader* header);

// Makes all of a large or huge block read zero.
void clear_large(SlabHeader* header);

// Returns a claimed block to the page heap, past the near caches; a huge block, too.
void release_far(SlabHeader* header, Kind kind);
// The counterpart of take_near, for large blocks of all lengths. Reports a thread that comes second.
inline void free_span(const char* call, const Heap* heap, SlabHeader* header) {
  SlabHeader* other = header;
  const unsigned slots = header->slots;
  if (slots > pages::kNearLengths)
    claim_span(call, header);
  else if (!pages::keep_near(near_cache(heap), header, slots, &other))
    claimed_before(call, header->start);
  if (other != nullptr) release_far(other, Kind::large);
}

// Frees a claimed block; its first-class heap, if it has one, is locked.
void release_large(SlabHeader* header, Kind kind);

// Resizes in place, or by remapping if it `may_move`. Null: not possible, and the block is unchanged.
void* resize_large(SlabHeader* header, size_t size, bool may_move);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LARGE_H
