// The quarantine: freed blocks of checked mode that are not reused yet.
#ifndef HUMMOCK_MODES_QUARANTINE_H
#define HUMMOCK_MODES_QUARANTINE_H

#include "modes/checked_record.h"

namespace hummock::modes::checked {

// Oldest first, linked only by `next`: these records are cold, so taking one out should touch no other. Each
// one's `prev` is a hint: the record that was pushed kAhead later, which is prefetched when its turn comes
// near. Guarded by checked.cc's lock, as all below.
constexpr size_t kAhead = 8;
struct Quarantine {
  Record* oldest;
  Record* newest;
  size_t bytes;
  size_t count;
  size_t pushed;
  Record* recent[kAhead];  // the last ones pushed; valid while `count` says that they are still here
};

// hummock_heap_destroy waits for blocks that other threads took out of quarantine and still hold. Heaps of
// this mode itself are never destroyed. An overwritten record may name anything.
bool is_awaited(const Record* record);

// Takes the blocks of a heap that ends out of it.
void drop(Quarantine& all, const UserHeap* heap);

// The record that check_all looks at next; it releases the lock in between.
extern Record* next_looked;

inline void push(Quarantine& all, Record* record) {
  Record*& before = all.recent[all.pushed++ % kAhead];
  if (before != nullptr && all.count >= kAhead) before->prev = record;
  before = record;
  record->next = record->prev = nullptr;
  (all.oldest != nullptr ? all.newest->next : all.oldest) = record;
  all.newest = record;
  all.bytes += record->room();
  all.count += 1;
}

inline void fetch(const Record* record) {
  for (size_t i = 0; i < 4; ++i) __builtin_prefetch(reinterpret_cast<const char*>(record) + 64 * i);
}

// Takes out what exceeds the bounds, oldest first, linked by `next`.
inline Record* take_surplus(Quarantine& all, size_t most_bytes, size_t most_count) {
  if (all.bytes <= most_bytes && all.count <= most_count) return nullptr;
  Record* first = all.oldest;
  Record* last = nullptr;
  for (; all.oldest != nullptr && (all.bytes > most_bytes || all.count > most_count);
       all.oldest = last->next) {
    last = all.oldest;
    if (last->prev != nullptr) fetch(last->prev);
    if (next_looked == last) next_looked = last->next;
    if (is_awaited(last)) __atomic_fetch_add(&last->heap->leaving, 1, __ATOMIC_RELAXED);
    all.bytes -= last->room();
    all.count -= 1;
  }
  if (last != nullptr) last->next = nullptr;
  return first;
}

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_QUARANTINE_H
