// Blocks with a mapping of their own: those above 32 MiB (or aligned to as much), and those that realloc
// moved here. The slot just before the block begins with its header, and before that most have an
// inaccessible slot.
#include <string.h>

#include "os/os.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/kept.h"
#include "pages/limits.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/room.h"

namespace hummock::pages {
namespace {

// Once there are kMostMappings, a block of less than this gets no mapping by growing: a process may have only
// 65,530 mappings.
constexpr size_t kSmallMapping = size_t{16} << 20;
constexpr size_t kMostMappings = 1024;
// At most so many have an inaccessible slot before their headers, which takes one more mapping each.
constexpr size_t kMostFronted = 4096;

// Guarded by mappings_lock.
HugeList all;
size_t total_bytes;
size_t total_blocks;  // also read without the lock, as a bound

// Called with mappings_lock held.
void account(ptrdiff_t blocks, ptrdiff_t bytes) {
  set_relaxed(total_blocks, total_blocks + static_cast<size_t>(blocks));
  total_bytes += static_cast<size_t>(bytes);
  note_huge_bytes(total_bytes, 0);
}

// From here on it is a live block, with its tail behind it.
void link(SlabHeader* header, size_t tail = 0) {
  bool cut;
  {
    os::LockGuard guard(mappings_lock);
    all.push_front(header);
    account(1, static_cast<ptrdiff_t>(header->bytes));
    cut = tail != 0 && !set_tail(header, tail);
  }
  enter_mapping(header->start);
  if (cut) cut_tail(header->start + header->bytes, tail, header->advised);
}

// If possible at a place behind which there is room.
char* map_behind(size_t before, size_t bytes, size_t align) {
  void* start = os::map_apart(bytes, align, before);
  if (start == nullptr) start = os::map_aligned(bytes, align, before);
  return static_cast<char*>(start);
}

// Address space with room for the headers before it, and an inaccessible slot if there is enough.
char* map_fronted(size_t bytes, size_t align, bool* fronted) {
  *fronted = relaxed(total_blocks) < kMostFronted && makes_guards();
  if (*fronted) {
    if (char* start = map_behind(kHeaders + kFront, bytes, align)) {
      os::deny(start - kHeaders - kFront, kFront);  // if refused, it just stays accessible
      return start;
    }
    *fronted = false;
  }
  return map_behind(kHeaders, bytes, align);
}

// A mapping with its header. Nobody else knows it yet.
SlabHeader* map_huge(size_t bytes, size_t align) {
  os::Event event;
  bool fronted;
  char* start = map_fronted(bytes, align > kRegionSize ? align : kRegionSize, &fronted);
  if (start == nullptr) {
    event.log("Alloc SP failed", nullptr, bytes, 0, "a large block: no room");
    return nullptr;
  }
  const bool advised = advise_block(start, bytes);
  SlabHeader* header = header_before(start);
  header->start = start;
  header->bytes = bytes;
  header->kind = Kind::huge;
  header->advised = advised;
  header->fronted = fronted;
  const size_t mapped = before_start(header) + bytes;
  event.log(advised ? "Alloc THP" : "Alloc SP", start, bytes, static_cast<ptrdiff_t>(mapped),
            "a large block");
  if (may_begin_mapping(start)) return header;
  if (advised) forget_block(bytes);
  unmap_or_purge(start - before_start(header), mapped);
  return nullptr;
}

// So many bytes without memory will be touched.
void note_fresh(size_t bytes) {
  slot_regret.value.note_needed(bytes / kSmallPage);
}

// Rounded up to whole pages, at least one; 0: too many.
size_t whole_pages(size_t size) {
  if (size == 0) size = 1;
  size_t bytes;
  if (__builtin_add_overflow(size, os::page_size() - 1, &bytes)) return 0;
  return base::align_down(bytes, os::page_size());
}

void set_bytes(SlabHeader* header, size_t bytes) {
  account(0, static_cast<ptrdiff_t>(bytes) - static_cast<ptrdiff_t>(header->bytes));
  header->bytes = bytes;
}

// A block with a tail grows into it without a system call.
bool grow_into_tail(SlabHeader* header, size_t bytes) {
  os::LockGuard guard(mappings_lock);
  const size_t mapped = header->bytes + static_cast<size_t>(tail_of(header));
  if (bytes > mapped) return false;
  take_tail(header);
  const size_t tail = tail_worth(mapped - bytes);
  set_bytes(header, mapped - tail);
  if (tail != 0) set_tail(header, tail);
  return true;
}

// Moves the block's pages to a longer mapping. Null: refused, and the block is unchanged; *full: for lack of
// address space. Once the pages have moved, anybody may map the old addresses, so the block leaves the region
// map before.
SlabHeader* move_mapping(SlabHeader* header, size_t bytes, bool* full) {
  char* start = header->start;
  SlabHeader* moved = map_huge(bytes, kRegionSize);
  *full = moved == nullptr;
  if (*full) return nullptr;
  os::Event event;
  if (moved->advised) forget_block(bytes);  // what moves keeps its own advice
  moved->advised = false;
  const bool was_known = leave_mapping(start);
  if (!os::move_pages(start, header->bytes, bytes, moved->start)) {
    unmap_block(moved);
    if (was_known) enter_mapping(start);
    return nullptr;
  }
  event.log("Move", moved->start, bytes, -static_cast<ptrdiff_t>(header->bytes), "a large block");
  {
    os::LockGuard guard(mappings_lock);
    all.remove(header);
    account(-1, -static_cast<ptrdiff_t>(header->bytes));
  }
  moved->user = header->user;
  moved->advised = header->advised;
  note_resized(header, header->bytes, bytes);
  note_fresh(bytes - header->bytes);
  unmap_or_purge(start - before_start(header), before_start(header));
  link(moved);
  return moved;
}

// Where there is no room to move it to. Growing in place needs least.
bool grow_short(char* start, size_t before, size_t bytes) {
  Room room(bytes - before, false);
  while (room.make()) {
    if (os::resize_in_place(start, before, bytes)) return true;
  }
  return false;
}

SlabHeader* move_short(SlabHeader* header, size_t bytes) {
  Room room(bytes + kHeaders + kFront, false);
  bool full = true;
  SlabHeader* moved = nullptr;
  while (full && room.make()) moved = move_mapping(header, bytes, &full);
  return moved;
}

}  // namespace

os::Lock<os::Rank::mappings> mappings_lock;

void count_guarded(ptrdiff_t blocks, ptrdiff_t bytes) {
  os::LockGuard guard(mappings_lock);
  account(blocks, bytes);
}

SlabHeader* allocate_huge(size_t size, size_t align, bool* zeroed) {
  const size_t bytes = whole_pages(size);
  if (bytes == 0 || !may_take(bytes)) return nullptr;
  size_t tail = 0;
  SlabHeader* header = align <= kRegionSize ? reuse(bytes, &tail) : nullptr;
  *zeroed = header == nullptr;
  if (header == nullptr && align <= kRegionSize) header = take_stuck(bytes);
  if (header == nullptr) {
    Room room(bytes + kHeaders + kFront, false);
    do header = map_huge(bytes, align);
    while (header == nullptr && room.make());
    if (header == nullptr) return nullptr;
    note_fresh(bytes);
  }
  header->kind = Kind::huge;
  link(header, tail);
  if (may_take(0)) return header;
  release_huge(header);  // others were told yes at the same time
  return nullptr;
}

void release_huge(SlabHeader* header) {
  leave_mapping(header->start);  // unless it has, when it was claimed
  header->kind = Kind::free;
  SlabHeader* oldest;
  {
    os::LockGuard guard(mappings_lock);
    all.remove(header);
    account(-1, -static_cast<ptrdiff_t>(header->bytes));
    header->bytes += take_tail(header);
    oldest = keep(header);
  }
  if (oldest != nullptr) unmap_block(oldest);
}

SlabHeader* resize_huge(SlabHeader* header, size_t size, bool may_move) {
  const size_t bytes = whole_pages(size);
  if (bytes == 0) return nullptr;
  if (bytes == header->bytes) return header;
  if (bytes > header->bytes && !may_take(bytes - header->bytes)) return nullptr;
  char* start = header->start;
  const size_t before = header->bytes;
  os::Event event;
  if (bytes > before && grow_into_tail(header, bytes)) {
    event.log("Grow", start, header->bytes, 0, "a large block, over what it had");
    return header;
  }
  size_t tail;
  size_t left = 0;  // what the system would not unmap becomes the block's tail: it is asked again later
  {
    os::LockGuard guard(mappings_lock);
    tail = take_tail(header);
  }
  if (bytes < before) {
    const size_t behind = before - bytes + tail;
    if (!unmap_or_purge(start + bytes, behind) && !os::kMustCommit) left = behind;
  } else {
    if (!os::resize_in_place(start, before + tail, bytes)) {
      if (tail != 0) cut_tail(start + before, tail, header->advised);
      tail = 0;
      if (!may_move) return nullptr;
      bool full;
      SlabHeader* moved = move_mapping(header, bytes, &full);
      if (!full) return moved;
      if (!grow_short(start, before, bytes)) return move_short(header, bytes);
    }
    note_fresh(bytes - before - tail);
    event.log("Grow", start, bytes, static_cast<ptrdiff_t>(bytes - before - tail), "a large block");
  }
  note_resized(header, before + tail, bytes + left);
  bool cut;
  {
    os::LockGuard guard(mappings_lock);
    set_bytes(header, bytes);
    cut = left != 0 && !set_tail(header, left);
  }
  if (cut) cut_tail(start + bytes, left, header->advised);
  return header;
}

SlabHeader* move_to_huge(SlabHeader* span, size_t size) {
  const size_t bytes = whole_pages(size);
  const size_t before = span->bytes;
  if (bytes == 0) return nullptr;
  if (bytes < kSmallMapping && relaxed(total_blocks) >= kMostMappings) return nullptr;
  if (bytes > before && !may_take(bytes - before)) return nullptr;
  size_t tail = 0;
  bool lift = false, lifted = false;
  SlabHeader* moved = reuse_whole(bytes, &tail);  // a kept mapping has memory, so copying is cheaper
  if (moved == nullptr) {
    lift = !os::kMustCommit && may_lift(span);
    moved = map_huge(lift ? before : bytes, kRegionSize);
    if (moved == nullptr) return nullptr;
    if (!lift) note_fresh(bytes);
  }
  os::Event event;
  if (lift) lifted = os::lift_pages(span->start, before, moved->start);
  if (!lifted) memcpy(moved->start, span->start, before);
  moved->kind = Kind::huge;
  event.log("Move", moved->start, moved->bytes, 0, lifted ? "a large block" : "a large block, copied");
  link(moved, tail);
  SlabHeader* grown = moved->bytes >= bytes ? moved : resize_huge(moved, size, true);
  if (grown == nullptr) {  // as it was: the span's slots are still mapped
    if (lifted) memcpy(span->start, moved->start, before);
    release_huge(moved);
    return nullptr;
  }
  lifted ? give_lifted(span) : release_span(span);
  return grown;
}

bool has_much_dirty() {
  return relaxed(dirty_slots) * kSlotSize > bound_by_use(size_t{4} << 20, 16);
}

void huge_totals(Totals* out) {
  os::LockGuard guard(mappings_lock);
  out->huge_blocks = total_blocks;
  out->huge_bytes = total_bytes;
  out->mapped += total_bytes + resting_bytes;
}

namespace {

// Inserts the block into its place among those found so far.
void insert(const HugeBlock& block, HugeBlock* out, unsigned* count, unsigned most) {
  if (*count == most && block.start > out[most - 1].start) return;
  unsigned at = *count < most ? (*count)++ : most - 1;
  for (; at != 0 && out[at - 1].start > block.start; --at) out[at] = out[at - 1];
  out[at] = block;
}

}  // namespace

// Racy: the thread that has just allocated a block writes `user`.
__attribute__((no_sanitize("thread"))) unsigned list_huge(const char* above, HugeBlock* out, unsigned most) {
  os::LockGuard guard(mappings_lock);
  unsigned count = 0;
  for (const SlabHeader* header = all.front(); header != nullptr; header = header->huge_next) {
    if (header->start > above) insert({header->start, header->bytes, header->user}, out, &count, most);
  }
  return count;
}

Extent enclosing_huge(const void* p) {
  os::LockGuard guard(mappings_lock);
  const char* inside = static_cast<const char*>(p);
  // Most often p is near a block's start, in checked mode above all. A header goes only after its block has
  // left the list, under the lock.
  const char* start = inside - reinterpret_cast<uintptr_t>(p) % kRegionSize;
  if (const SlabHeader* header = find_mapping(start)) {
    if (inside < header->start + header->bytes) return {header->start, header->bytes};
  }
  for (const SlabHeader* header = all.front(); header != nullptr; header = header->huge_next) {
    if (inside >= header->start - before_start(header) && inside < header->start + header->bytes)
      return {header->start, header->bytes};
  }
  return {};
}

void huge_at_fork(os::ForkStep step) {
  mappings_lock.at_fork(step);
}
bool huge_is_locked() {
  return mappings_lock.is_held();
}

}  // namespace hummock::pages
