// Mappings of freed blocks, and tails of blocks that got shorter.
#include "pages/kept.h"

#include <string.h>

#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/regret.h"

namespace hummock::pages {

size_t resting_bytes;

namespace {

constexpr size_t kMostKept = 16;  // a search looks at them all
constexpr unsigned kMostTails = 16;

// All guarded by mappings_lock.
HugeList kept;  // newest first
size_t kept_blocks;
SlabHeader* tails[kMostTails];
unsigned tail_count;
size_t fresh_before, used_before;  // fresh_slots and used_slots when a mapping last began to rest, or went
HugeList stuck;
size_t stuck_blocks;  // also read without the lock, as a hint

int32_t slots_in(size_t bytes) {
  return static_cast<int32_t>(bytes / kSlotSize);
}

void note_spans() {
  fresh_before = relaxed(fresh_slots);
  used_before = relaxed(used_slots);
}

void rest(size_t bytes) {
  note_spans();
  resting_bytes += bytes;
  note_huge_bytes(relaxed(huge_bytes), slots_in(bytes));
}

void unrest(size_t bytes) {
  resting_bytes -= bytes;
  note_huge_bytes(relaxed(huge_bytes), -slots_in(bytes));
}

void unkeep(SlabHeader* header) {
  kept.remove(header);
  --kept_blocks;
  unrest(header->bytes);
}

// The shortest kept mapping that is long enough. Without one, the longest if it has two thirds of the length.
SlabHeader* take_fitting(size_t bytes, bool whole) {
  os::LockGuard guard(mappings_lock);
  SlabHeader* best = nullptr;
  for (SlabHeader* header = kept.front(); header != nullptr; header = header->huge_next) {
    const bool fits = header->bytes >= bytes;
    if (best == nullptr) {
      if (fits || !whole) best = header;
    } else if (best->bytes >= bytes ? fits && header->bytes < best->bytes : header->bytes > best->bytes) {
      best = header;
    }
  }
  if (best == nullptr || best->bytes < bytes - bytes / 3) return nullptr;
  unkeep(best);
  return best;
}

// Makes the mapping fit the block. What is beyond the block becomes its tail.
SlabHeader* fit(SlabHeader* header, size_t bytes, size_t* tail) {
  if (header == nullptr) return nullptr;
  os::Event event;
  const size_t before = header->bytes;
  *tail = 0;
  if (before < bytes) {
    if (!os::resize_in_place(header->start, before, bytes)) {
      unmap_block(header);
      return nullptr;
    }
    note_resized(header, before, bytes);
    slot_regret.value.note_needed((bytes - before) / kSmallPage);
    header->bytes = bytes;
  } else {
    *tail = tail_worth(before - bytes);
    header->bytes = before - *tail;
  }
  header->rests_since = 0;
  const size_t more = bytes > before ? bytes - before : 0;
  event.log("Reuse", header->start, header->bytes, static_cast<ptrdiff_t>(more), "a large block");
  return header;
}

// What waits longest: a kept mapping, or a block with a tail. Null: nothing waits.
SlabHeader* oldest_resting() {
  SlabHeader* oldest = kept.back();
  for (unsigned i = 0; i < tail_count; ++i) {
    if (oldest == nullptr || tails[i]->rests_since < oldest->rests_since) oldest = tails[i];
  }
  return oldest;
}

// Since then spans took half as much fresh memory as the mapping has, which they cannot use, and have it
// still. So what rests goes as spans grow, and if it is needed again, that costs twice the page faults of
// their growth at most. Not where an array may have it that is a span until it has grown (move_to_huge).
bool is_passed_by(size_t bytes) {
  const size_t half = bytes / 2 / kSlotSize;
  return bytes > kRegionSize && relaxed(fresh_slots) - fresh_before >= half &&
         relaxed(used_slots) >= used_before + half;
}

}  // namespace

bool set_tail(SlabHeader* header, size_t bytes) {
  if (tail_count == kMostTails) return false;
  tail_of(header) = bytes;
  header->rests_since = os::now_ms();
  tails[tail_count++] = header;
  rest(bytes);
  return true;
}

size_t take_tail(SlabHeader* header) {
  const auto bytes = static_cast<size_t>(tail_of(header));
  if (bytes == 0) return 0;
  unsigned i = 0;
  while (tails[i] != header) ++i;
  tails[i] = tails[--tail_count];
  tail_of(header) = 0;
  unrest(bytes);
  return bytes;
}

SlabHeader* keep(SlabHeader* header) {
  header->rests_since = os::now_ms();
  kept.push_front(header);
  ++kept_blocks;
  rest(header->bytes);
  if (kept_blocks <= kMostKept) return nullptr;
  SlabHeader* oldest = kept.back();
  unkeep(oldest);
  return oldest;
}

SlabHeader* reuse(size_t bytes, size_t* tail) {
  return fit(take_fitting(bytes, false), bytes, tail);
}

SlabHeader* reuse_whole(size_t bytes, size_t* tail) {
  return fit(take_fitting(bytes, true), bytes, tail);
}

SlabHeader* take_stuck(size_t bytes) {
  if (relaxed(stuck_blocks) == 0) return nullptr;
  os::LockGuard guard(mappings_lock);
  for (SlabHeader* header = stuck.front(); header != nullptr; header = header->huge_next) {
    if (header->bytes < bytes || header->bytes - bytes > bytes / 4) continue;
    stuck.remove(header);
    set_relaxed(stuck_blocks, stuck_blocks - 1);
    return header;
  }
  return nullptr;
}

bool unmap_or_purge(void* address, size_t size) {
  os::Event event;
  const bool gone = os::unmap(address, size);
  if (!gone) os::purge(address, size);
  gone ? event.log("Free", address, size, -static_cast<ptrdiff_t>(size))
       : event.log("Free failed -> purge", address, size, 0);
  return gone;
}

void cut_tail(char* tail, size_t bytes, bool advised) {
  if (advised) forget_block(bytes);
  unmap_or_purge(tail, bytes);
}

void note_resized(const SlabHeader* header, size_t before, size_t bytes) {
  if (header->advised) forget_block(before - bytes);  // modulo 2^64: may add
}

void unmap_block(SlabHeader* header) {
  char* start = header->start;
  const size_t bytes = header->bytes;
  if (header->advised) forget_block(bytes);
  const size_t front = before_start(header);
  os::Event event;
  if (os::unmap(start - front, front + bytes)) {
    event.log("Free", start - front, front + bytes, -static_cast<ptrdiff_t>(front + bytes));
    return;
  }
  // The next block relies on zeros.
  if (!os::purge(start, bytes)) memset(start, 0, bytes);
  event.log("Free failed -> purge", start, bytes, 0);
  header->advised = false;
  os::LockGuard guard(mappings_lock);
  stuck.push_front(header);
  set_relaxed(stuck_blocks, stuck_blocks + 1);
}

size_t drop_kept(uint64_t before, size_t most_dirty) {
  SlabHeader* oldest;
  char* tail;
  size_t bytes;
  bool is_tail, advised;  // read under the lock: later the block may be freed and its mapping gone
  {
    os::LockGuard guard(mappings_lock);
    oldest = oldest_resting();
    if (oldest == nullptr) return 0;
    is_tail = tail_of(oldest) != 0;
    bytes = is_tail ? static_cast<size_t>(tail_of(oldest)) : oldest->bytes;
    const bool passed_by = is_passed_by(bytes);
    const bool due = oldest->rests_since <= before || passed_by;
    if (!due && relaxed(dirty_slots) <= most_dirty) return 0;
    if (passed_by) note_spans();
    advised = oldest->advised;
    tail = oldest->start + oldest->bytes;
    is_tail ? void(take_tail(oldest)) : unkeep(oldest);
    if (!due) slot_regret.value.note_purged(bytes / kSmallPage);
  }
  is_tail ? cut_tail(tail, bytes, advised) : unmap_block(oldest);
  return bytes;
}

bool drop_all_kept() {
  bool any = false;
  while (drop_kept(kForEver, 0) != 0) any = true;
  return any;
}

void unmap_kept() {
  while (SlabHeader* header = kept.front()) {
    kept.remove(header);
    unmap_block(header);
  }
  while (SlabHeader* header = stuck.front()) {
    stuck.remove(header);
    const size_t front = before_start(header);
    os::unmap(header->start - front, front + header->bytes);
  }
}

}  // namespace hummock::pages
