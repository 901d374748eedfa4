// Blocks above 64 KiB, and aligned ones that no class can serve.
#ifndef HUMMOCK_HEAP_LARGE_H
#define HUMMOCK_HEAP_LARGE_H

#include "heap/heap.h"
#include "heap/user.h"
#include "pages/span_cache.h"

namespace hummock::heap {

// `owner` is a first-class heap (locked by the caller) or null. *zeroed says whether it reads zero.
void* allocate_large(UserHeap* owner, size_t size, size_t align, bool* zeroed);

// Blocks of at most kMaxNear bytes have an entry in the processor's near cache. Threads that take turns on a
// processor share it.
inline constexpr size_t kMaxNear = pages::kNearLengths * kSlotSize;
inline unsigned near_entry(const Heap* heap, unsigned slots) {
  return pages::near_entry(os::processor(heap->near_cache), slots);
}

// Claims the block for the caller's free or move: a span's kind is free from now on, and a huge block's start
// is no longer in the region map. A thread that comes second is reported.
void claimed_before(const char* call, const void* start);
inline void claim_span(const char* call, SlabHeader* header) {
  Kind kind = Kind::large, free = Kind::free;
  // Relaxed: nobody else looks at the block's fields from here on.
  if (!__atomic_compare_exchange(&header->kind, &kind, &free, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    claimed_before(call, header->start);
}
// Claims a block of either kind, and returns the kind.
Kind claim_large(const char* call, SlabHeader* header);

// Makes all of a large or huge block read zero, but for the first `kept` bytes.
void clear_large(SlabHeader* header, size_t kept = 0);

// Returns a claimed block to the page heap, past the near caches; a huge block, too.
void release_far(SlabHeader* header, Kind kind);
// The same for a block above kMaxNear that is not yet claimed.
void free_far(const char* call, SlabHeader* header);
// The block's span is cached, but the entry led to `before`.
void keep_elsewhere(SlabHeader* header, unsigned entry, SlabHeader* before);
// Frees a large block of no first-class heap, of any length. Reports a thread that comes second. What is not
// usual is a tail call, so that this needs no stack frame.
inline void free_span(const char* call, const Heap* heap, SlabHeader* header) {
  const unsigned slots = header->slots;
  if (__builtin_expect(slots > pages::kNearLengths, false)) return free_far(call, header);
  const unsigned entry = near_entry(heap, slots);
  if (__builtin_expect(!pages::make_cached(header, entry), false)) return claimed_before(call, header->start);
  SlabHeader* before = pages::look_at_entry(entry);
  if (__builtin_expect(before != header, false)) keep_elsewhere(header, entry, before);
}

// Frees a claimed block; its first-class heap, if it has one, is locked.
void release_large(SlabHeader* header, Kind kind);

// Resizes in place, or by remapping if it `may_move` and is no first-class heap's. Null: not possible, and the
// block is unchanged.
void* resize_large(SlabHeader* header, size_t size, bool may_move);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_LARGE_H
