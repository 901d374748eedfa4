// Totals of what threads draw from slabs, by the tag that they have. A heap counts for its thread, without
// atomics, and adds to its tag's row when the tag changes and when the thread ends.
#ifndef HUMMOCK_HEAP_TAG_H
#define HUMMOCK_HEAP_TAG_H

#include "heap/heap.h"

namespace hummock::heap {

inline constexpr unsigned kTags = HUMMOCK_TAG_COUNT;

struct TagTotal {
  uint32_t tag;
  bool used;
  uint64_t bytes;
  uint64_t blocks;
  uint64_t reused;  // of spans from near caches
};

// The calling thread's tag becomes this one. The one before.
uint32_t change_tag(uint32_t tag);

// Adds what the heap has counted to its tag's row.
void settle_tag(Heap* heap);

// All rows, with what heaps have not added yet. A figure may be late, or twice there, while threads run.
void sum_tags(TagTotal (&totals)[kTags]);

// So many bytes in blocks leave the slabs, or a large block is handed out.
inline void count_drawn(Heap* heap, size_t bytes, size_t blocks) {
  heap->drawn_bytes += bytes;
  heap->drawn_blocks += blocks;
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_TAG_H
