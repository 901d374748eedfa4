#include "heap/tag.h"

#include "heap/attach.h"

namespace hummock::heap {
namespace {

// A row is taken by who finds it without a key, and is never given up. All atomic, relaxed: figures.
struct Row {
  uint64_t key;  // tag + 1; 0: nobody's
  uint64_t bytes;
  uint64_t blocks;
  uint64_t reused;
};
Row rows[kTags];  // the first is that of tag 0, the last that of all which find no other

constexpr uint64_t key_of(uint32_t tag) {
  return uint64_t{tag} + 1;
}

unsigned row_for(uint32_t tag) {
  if (tag == 0) return 0;
  if (tag == HUMMOCK_TAG_OTHERS) return kTags - 1;
  for (unsigned i = 1; i < kTags - 1; ++i) {
    uint64_t key = __atomic_load_n(&rows[i].key, __ATOMIC_RELAXED);
    // A failed exchange tells who was quicker: perhaps the same tag in another thread.
    if (key == 0 && __atomic_compare_exchange_n(&rows[i].key, &key, key_of(tag), false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
      return i;
    if (key == key_of(tag)) return i;
  }
  return kTags - 1;
}

}  // namespace

void settle_tag(Heap* heap) {
  Row& row = rows[heap->tag_row];
  __atomic_fetch_add(&row.bytes, heap->drawn_bytes + heap->reused_bytes, __ATOMIC_RELAXED);
  __atomic_fetch_add(&row.blocks, heap->drawn_blocks, __ATOMIC_RELAXED);
  __atomic_fetch_add(&row.reused, heap->reused_bytes, __ATOMIC_RELAXED);
  heap->drawn_bytes = heap->drawn_blocks = heap->reused_bytes = 0;
}

uint32_t change_tag(uint32_t tag) {
  Heap* heap = attach();
  if (heap == nullptr) return 0;
  const uint32_t before = heap->tag;
  if (tag == before) return before;
  settle_tag(heap);
  heap->tag = tag;
  heap->tag_row = static_cast<uint8_t>(row_for(tag));
  return before;
}

// Counters of other threads' heaps are read while they are written.
__attribute__((no_sanitize("thread"))) void sum_tags(TagTotal (&totals)[kTags]) {
  for (unsigned i = 0; i < kTags; ++i) {
    const uint64_t key = __atomic_load_n(&rows[i].key, __ATOMIC_RELAXED);
    const bool others = i == kTags - 1;
    totals[i].tag = others ? HUMMOCK_TAG_OTHERS : i == 0 ? 0 : static_cast<uint32_t>(key - 1);
    totals[i].used = key != 0 || i == 0;
    totals[i].bytes = __atomic_load_n(&rows[i].bytes, __ATOMIC_RELAXED);
    totals[i].blocks = __atomic_load_n(&rows[i].blocks, __ATOMIC_RELAXED);
    totals[i].reused = __atomic_load_n(&rows[i].reused, __ATOMIC_RELAXED);
  }
  for (const Heap* heap = all_heaps(); heap != nullptr; heap = heap->next_record) {
    const unsigned row = heap->tag_row;
    if (row >= kTags) continue;
    totals[row].bytes += heap->drawn_bytes + heap->reused_bytes;
    totals[row].blocks += heap->drawn_blocks;
    totals[row].reused += heap->reused_bytes;
  }
  TagTotal& others = totals[kTags - 1];
  others.used = others.blocks != 0;
}

}  // namespace hummock::heap
