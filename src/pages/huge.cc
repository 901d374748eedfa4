// Blocks above 32 MiB (or aligned to as much): a mapping each, whose 512 headers stand just before the
// block. Only the first header is used; the others read zero, so an inner address finds kind free.
//
// The mapping of a block that was freed is kept for a while, within the budget of dirty memory, and serves
// the next block of about its size. Then its header has kind free, and its time instead of a live_sum.
#include <string.h>

#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"

namespace hummock::pages {
namespace {

constexpr size_t kHeaders = kSlotSize;

using HugeList = base::List<SlabHeader, &SlabHeader::huge_next, &SlabHeader::huge_prev>;

os::Lock lock;
// All below is guarded by lock.
HugeList all;
size_t total_blocks;
size_t total_bytes;
HugeList kept;  // newest first
size_t kept_blocks;
size_t kept_bytes;

constexpr size_t kMostKept = 16;  // a search looks at them all

void account(ptrdiff_t blocks, ptrdiff_t bytes) {
  total_blocks += static_cast<size_t>(blocks);
  total_bytes += static_cast<size_t>(bytes);
  note_huge_bytes(total_bytes, 0);
}

int32_t slots_in(const SlabHeader* header) {
  return static_cast<int32_t>(header->bytes / kSlotSize);
}

void keep(SlabHeader* header) {
  header->live_sum = kNow;
  kept.push_front(header);
  ++kept_blocks;
  kept_bytes += header->bytes;
  note_huge_bytes(total_bytes, slots_in(header));
}

void unkeep(SlabHeader* header) {
  kept.remove(header);
  --kept_blocks;
  kept_bytes -= header->bytes;
  note_huge_bytes(total_bytes, -slots_in(header));
}

size_t distance(size_t a, size_t b) {
  return a > b ? a - b : b - a;
}

SlabHeader* headers_of(char* start) {
  return reinterpret_cast<SlabHeader*>(start - kHeaders);
}

void link(SlabHeader* header) {
  os::LockGuard guard(lock);
  all.push_front(header);
  account(1, static_cast<ptrdiff_t>(header->bytes));
}

void unlink(SlabHeader* header) {
  os::LockGuard guard(lock);
  all.remove(header);
  account(-1, -static_cast<ptrdiff_t>(header->bytes));
}

// Unmapping can fail where the map count is exhausted: then at least the memory goes back.
void unmap_or_purge(void* address, size_t size) {
  os::Event event;
  if (os::unmap(address, size)) {
    event.log("Free", address, size, -static_cast<ptrdiff_t>(size));
  } else {
    os::purge(address, size);
    event.log("Free failed -> purge", address, size, 0);
  }
}

void note_resized(const SlabHeader* header, size_t bytes) {
  if (header->advised) forget_block(header->bytes - bytes);  // modulo 2^64: may add
}

// The entry names one mapping; its address space is free again only after it is out of the map.
char* map_huge(size_t bytes, size_t align) {
  os::Event event;
  char* start =
      static_cast<char*>(os::map_aligned(bytes, align > kRegionSize ? align : kRegionSize, kHeaders));
  if (start == nullptr) {
    event.log("Alloc SP failed", nullptr, bytes, 0, "a large block: no room");
    return nullptr;
  }
  const bool advised = advise_block(start, bytes);
  event.log(advised ? "Alloc THP" : "Alloc SP", start, bytes, static_cast<ptrdiff_t>(bytes + kHeaders),
            "a large block");
  headers_of(start)->advised = advised;
  note_clean(static_cast<uint32_t>(bytes / kSlotSize));
  if (enter_region(start, headers_of(start))) return start;
  if (advised) forget_block(bytes);
  unmap_or_purge(start - kHeaders, kHeaders + bytes);
  return nullptr;
}

void unmap_block(SlabHeader* header) {
  char* start = header->start;
  const size_t bytes = header->bytes;
  if (header->advised) forget_block(bytes);
  remove_region(start);
  unmap_or_purge(start - kHeaders, kHeaders + bytes);
}

// The kept one whose size is nearest; no other is worth its trouble if that one is not.
SlabHeader* take_nearest(size_t bytes) {
  os::LockGuard guard(lock);
  SlabHeader* best = nullptr;
  for (SlabHeader* header = kept.front(); header != nullptr; header = header->huge_next) {
    if (best == nullptr || distance(header->bytes, bytes) < distance(best->bytes, bytes)) best = header;
  }
  if (best == nullptr || distance(best->bytes, bytes) > bytes / 2) return nullptr;
  unkeep(best);
  return best;
}

// A kept mapping made fit; null: none. What is a quarter too long is not worth a cut.
SlabHeader* reuse(size_t bytes) {
  SlabHeader* header = take_nearest(bytes);
  if (header == nullptr) return nullptr;
  os::Event event;
  const size_t before = header->bytes;
  if (before < bytes) {
    if (!os::resize_in_place(header->start, before, bytes)) {
      unmap_block(header);
      return nullptr;
    }
  } else if (before - bytes > bytes / 4) {
    unmap_or_purge(header->start + bytes, before - bytes);
  } else {
    bytes = before;
  }
  note_resized(header, bytes);
  header->bytes = bytes;
  // A cut has an event of its own.
  const size_t more = bytes > before ? bytes - before : 0;
  event.log("Reuse", header->start, bytes, static_cast<ptrdiff_t>(more), "a large block");
  return header;
}

}  // namespace

SlabHeader* allocate_huge(size_t size, size_t align, bool* zeroed) {
  size_t bytes;
  if (__builtin_add_overflow(size, os::page_size() - 1, &bytes)) return nullptr;
  bytes = base::align_down(bytes, os::page_size());
  SlabHeader* header = align <= kRegionSize ? reuse(bytes) : nullptr;
  *zeroed = header == nullptr;
  if (header == nullptr) {
    char* start = map_huge(bytes, align);
    if (start == nullptr && drop_all_kept()) start = map_huge(bytes, align);
    if (start == nullptr) return nullptr;
    header = headers_of(start);
    header->start = start;
    header->bytes = bytes;
  }
  header->live_sum = 0;
  header->kind = Kind::huge;
  link(header);
  return header;
}

void release_huge(SlabHeader* header) {
  header->kind = Kind::free;
  SlabHeader* oldest = nullptr;
  {
    os::LockGuard guard(lock);
    all.remove(header);
    account(-1, -static_cast<ptrdiff_t>(header->bytes));
    keep(header);
    if (kept_blocks > kMostKept) unkeep(oldest = kept.back());
  }
  if (oldest != nullptr) unmap_block(oldest);
}

size_t drop_kept(uint64_t before, size_t most_dirty, uint64_t now) {
  size_t dropped = 0;
  for (;;) {
    SlabHeader* oldest;
    {
      os::LockGuard guard(lock);
      for (SlabHeader* h = kept.front(); h != nullptr && h->live_sum == kNow; h = h->huge_next) {
        h->live_sum = now;
      }
      oldest = kept.back();
      if (oldest == nullptr) return dropped;
      const bool due = oldest->live_sum <= before;
      if (!due && relaxed(dirty_slots) <= most_dirty) return dropped;
      unkeep(oldest);
      if (!due) note_excess(static_cast<uint32_t>(slots_in(oldest)));
    }
    dropped += oldest->bytes;
    unmap_block(oldest);
  }
}

SlabHeader* resize_huge(SlabHeader* header, size_t size) {
  size_t bytes;
  if (__builtin_add_overflow(size, os::page_size() - 1, &bytes)) return nullptr;
  bytes = base::align_down(bytes, os::page_size());
  if (bytes == header->bytes) return header;
  char* start = header->start;
  os::Event event;
  if (bytes < header->bytes) {
    unmap_or_purge(start + bytes, header->bytes - bytes);
  } else if (os::resize_in_place(start, header->bytes, bytes)) {
    event.log("Grow", start, bytes, static_cast<ptrdiff_t>(bytes - header->bytes), "a large block");
  } else {
    char* fresh = map_huge(bytes, kRegionSize);
    if (fresh == nullptr) return nullptr;
    if (headers_of(fresh)->advised) forget_block(bytes);  // what moves keeps its own advice
    if (!os::move_pages(start, header->bytes, bytes, fresh)) {
      remove_region(fresh);
      unmap_or_purge(fresh - kHeaders, kHeaders + bytes);
      return nullptr;
    }
    event.log("Move", fresh, bytes, -static_cast<ptrdiff_t>(header->bytes), "a large block");
    unlink(header);
    SlabHeader* moved = headers_of(fresh);
    moved->kind = Kind::huge;
    moved->home = header->home;
    moved->start = fresh;
    moved->bytes = bytes;
    moved->advised = header->advised;
    note_resized(header, bytes);
    remove_region(start);
    unmap_or_purge(header, kHeaders);
    link(moved);
    return moved;
  }
  note_resized(header, bytes);
  os::LockGuard guard(lock);
  account(0, static_cast<ptrdiff_t>(bytes) - static_cast<ptrdiff_t>(header->bytes));
  header->bytes = bytes;
  return header;
}

SlabHeader* move_to_huge(SlabHeader* span, size_t size) {
  const size_t before = span->bytes;
  os::Event event;
  char* fresh = map_huge(before, kRegionSize);
  if (fresh == nullptr) return nullptr;
  SlabHeader* moved = headers_of(fresh);
  moved->start = fresh;
  moved->bytes = before;
  moved->kind = Kind::huge;
  const bool lifted = may_lift(span) && os::lift_pages(span->start, before, fresh);
  if (!lifted) memcpy(fresh, span->start, before);
  event.log("Move", fresh, before, 0, lifted ? "a large block" : "a large block, copied");
  link(moved);
  lifted ? give_lifted(span) : release_span(span);
  return resize_huge(moved, size);
}

void huge_totals(Totals* out) {
  os::LockGuard guard(lock);
  out->huge_blocks = total_blocks;
  out->huge_bytes = total_bytes;
  out->mapped += total_bytes + kept_bytes;
}

void visit_huge(void (*visit)(const SlabHeader*, void*), void* context) {
  os::LockGuard guard(lock);
  for (SlabHeader* header = all.front(); header != nullptr; header = header->huge_next)
    visit(header, context);
}

SlabHeader* enclosing_huge(const void* p) {
  os::LockGuard guard(lock);
  const char* inside = static_cast<const char*>(p);
  for (SlabHeader* header = all.front(); header != nullptr; header = header->huge_next) {
    if (inside >= header->start - kHeaders && inside < header->start + header->bytes) return header;
  }
  return nullptr;
}

void unmap_kept() {
  while (SlabHeader* header = kept.front()) {
    kept.remove(header);
    unmap_block(header);
  }
}

void huge_lock() {
  lock.lock_for_fork();
}
void huge_unlock() {
  lock.unlock_after_fork();
}
void huge_reset() {
  lock.unlock_in_child();
}
bool huge_is_locked() {
  return lock.is_held();
}

}  // namespace hummock::pages
