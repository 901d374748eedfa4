// Blocks above 16 MiB (or aligned to more): a mapping each, whose 512 headers stand just before the
// block. Only the first header is used; the others read zero, so an inner address finds kind free.
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
HugeList all;         // guarded by lock
size_t total_blocks;  // guarded by lock
size_t total_bytes;   // guarded by lock

void account(ptrdiff_t blocks, ptrdiff_t bytes) {
  total_blocks += static_cast<size_t>(blocks);
  total_bytes += static_cast<size_t>(bytes);
  note_huge_bytes(total_bytes);
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
  if (enter_region(start, headers_of(start))) return start;
  if (advised) forget_block(bytes);
  unmap_or_purge(start - kHeaders, kHeaders + bytes);
  return nullptr;
}

}  // namespace

SlabHeader* allocate_huge(size_t size, size_t align) {
  size_t bytes;
  if (__builtin_add_overflow(size, os::page_size() - 1, &bytes)) return nullptr;
  bytes = base::align_down(bytes, os::page_size());
  char* start = map_huge(bytes, align);
  if (start == nullptr) return nullptr;
  SlabHeader* header = headers_of(start);
  header->start = start;
  header->bytes = bytes;
  header->kind = Kind::huge;
  link(header);
  return header;
}

void release_huge(SlabHeader* header) {
  char* start = header->start;
  const size_t bytes = header->bytes;
  unlink(header);
  if (header->advised) forget_block(bytes);
  header->kind = Kind::free;
  remove_region(start);
  unmap_or_purge(start - kHeaders, kHeaders + bytes);
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

void huge_totals(Totals* out) {
  os::LockGuard guard(lock);
  out->huge_blocks = total_blocks;
  out->huge_bytes = total_bytes;
  out->mapped += total_bytes;
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
