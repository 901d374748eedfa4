// Blocks above 64 KiB, and aligned ones that no class can serve.
#ifndef HUMMOCK_HEAP_LARGE_H
#define HUMMOCK_HEAP_LARGE_H

#include "heap/heap.h"
#include "heap/user.h"
#include "pages/span_cache.h"

namespace hummock::heap {

// `owner` is a first-class heap (locked by the caller) or null. *zeroed says whether it reads zero.
void* allocate_large(UserHeap* owner, size_t size, size_t align, bool* zeroed);

// A block of at most kMaxNear bytes that this thread, most likely, freed a moment ago; null: none. Spans in
// near caches have no first-class heap.
inline constexpr size_t kMaxNear = pages::kNearLengths * kSlotSize;
inline SlabHeader* take_near(const Heap* heap, size_t size) {
  const auto slots = static_cast<unsigned>(base::divide_up(size, kSlotSize));
  SlabHeader* header = pages::take_near(heap->near_cache, slots);
  // Relaxed: who knows the block's address got it from who allocates here.
  if (header != nullptr) set_relaxed(header->kind, Kind::large);
  return header;
}

// Makes the caller the one who frees, or moves, the block: a span's kind is free from now on, and a huge
// block's start in the region map no more. Who comes second is told.
[[noreturn]] void claimed_before(const char* call, const void* start);
inline void claim_span(const char* call, SlabHeader* header) {
  Kind kind = Kind::large, free = Kind::free;
  // Relaxed: nobody else looks at the block's fields from here on.
  if (!__atomic_compare_exchange(&header->kind, &kind, &free, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    claimed_before(call, header->start);
}
// Which of them it was.
Kind claim_large(const char* call, SlabHeader* header);

// Makes all of a large or huge block read zero.
void clear_large(SlabHeader* header);

// Back to the page heap, past the near caches; a huge block, too.
void release_far(SlabHeader* header, Kind kind);
// The counterpart of take_near, for spans of all lengths. Claimed.
inline void release_span(const Heap* heap, SlabHeader* header) {
  if (header->slots <= pages::kNearLengths) header = pages::keep_near(heap->near_cache, header);
  if (header != nullptr) release_far(header, Kind::large);
}

// A large or huge block that is claimed; its heap, if any, is locked.
void release_large(SlabHeader* header, Kind kind);

// Resizes where it stands or by remapping; null when that is not possible (the block is unchanged).
void* resize_large(SlabHeader* header, size_t size);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LARGE_H
