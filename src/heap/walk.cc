#include "heap/walk.h"

#include "heap/attach.h"
#include "heap/diagnose.h"
#include "heap/modes.h"
#include "pages/pages.h"
#include "slab/gone.h"

namespace hummock::heap {
namespace {

constexpr unsigned kMostBlocks = kSlotSize / slab::kTinySize;

// The live blocks of one slab, as they are at one moment: `visit` may change them.
struct Live {
  char* start;
  size_t block_size;
  unsigned carved;
  uint64_t bits[kMostBlocks / 64];
};

// A free block has its link in two words from its free until it is handed out (slab/free_block.h).
HUMMOCK_RACY bool has_link(const SlabHeader* slab, char* block, bool tiny) {
  const auto* words = reinterpret_cast<const volatile uintptr_t*>(block);
  if (tiny) {
    const auto word = *reinterpret_cast<const volatile uint64_t*>(block);
    return slab::is_tiny_link(word ^ slab::tiny_mask(block));
  }
  const uintptr_t check = words[0], link = words[1];
  const bool like = !slab::kMarksLinks || (uint64_t{link ^ slab::secret()} >> 48) == 0;
  if (!like || ((check ^ link) > slab::kRemote && !is_waiting(link))) return false;
  return slab::kMarksLinks || leads_on(slab, link);  // two words that are the same are no rare thing
}

// Where another slab is being made of it there is nothing to be told of.
HUMMOCK_RACY void look_at(const SlabHeader* slab, Live* live) {
  const unsigned size_class = slab->size_class, carved = slab->carved;
  if (size_class == 0 || size_class >= slab::kClasses) return;
  const slab::SizeClass& row = slab::kTable.row[size_class];
  if (carved > row.capacity) return;
  const unsigned gone = slab::gone_pages(slab);
  live->start = slab->start;
  live->block_size = row.block_size;
  live->carved = carved;
  for (unsigned i = 0; i < live->carved; ++i) {
    if (i % 64 == 0) live->bits[i / 64] = 0;
    char* block = live->start + size_t{i} * row.block_size;
    const bool is_gone = gone != 0 && (gone >> slab::page_of(slab, block) & 1) != 0;
    if (is_gone || has_link(slab, block, size_class == slab::kTiny)) continue;
    live->bits[i / 64] |= uint64_t{1} << i % 64;
  }
}

bool tell(const Live& live, const Visitor& visitor) {
  for (unsigned i = 0; i < live.carved; ++i) {
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): look_at wrote as many
    if ((live.bits[i / 64] >> i % 64 & 1) == 0) continue;
    if (visitor.visit(visitor.context, live.start + size_t{i} * live.block_size, live.block_size) == 0)
      return false;
  }
  return true;
}

struct Large {
  void* start;  // null: none
  size_t bytes;
};

// Looks at a header that belongs to the heap or, without one, to no first-class heap. Puts a slab's blocks
// into *live, and returns a large block.
HUMMOCK_RACY Large look(const SlabHeader* header, const UserHeap* heap, Live* live) {
  live->carved = 0;
  const Kind kind = header->kind;
  const UserHeap* owner = header->user;
  const bool processes = kind == Kind::slab || owner == nullptr || owner->internal;
  const bool wanted = heap != nullptr ? kind != Kind::slab && owner == heap : processes;
  if (!wanted) return {};
  if (kind == Kind::large) return {header->start, header->bytes};
  if (kind == Kind::own_slab || (kind == Kind::slab && heap == nullptr)) look_at(header, live);
  return {};
}

// A first-class heap's headers stay as they are while its lock is held.
Large look_locked(const SlabHeader* header, UserHeap* heap, Live* live) {
  if (heap == nullptr) return look(header, nullptr, live);
  live->carved = 0;
  if (relaxed(header->user) != heap) return {};
  os::LockGuard guard(heap->lock);
  return look(header, heap, live);
}

bool walk_huge(const UserHeap* heap, const Visitor& visitor) {
  constexpr unsigned kTogether = 32;
  pages::HugeBlock blocks[kTogether];
  const char* last = nullptr;
  for (;;) {
    const unsigned count = pages::list_huge(last, blocks, kTogether);
    for (unsigned i = 0; i < count; ++i) {
      last = blocks[i].start;
      const UserHeap* owner = blocks[i].heap;
      if (owner != heap && !(heap == nullptr && owner->internal)) continue;
      if (visitor.visit(visitor.context, blocks[i].start, blocks[i].bytes) == 0) return false;
    }
    if (count < kTogether) return true;
  }
}

}  // namespace

void walk_blocks(UserHeap* heap, const Visitor& visitor) {
  pages::Headers all;
  Live live;
  while (const SlabHeader* header = all.next()) {
    const Large large = look_locked(header, heap, &live);
    if (large.start != nullptr && visitor.visit(visitor.context, large.start, large.bytes) == 0) return;
    if (!tell(live, visitor)) return;
  }
  if (heap == nullptr && !modes::guards::walk(visitor)) return;
  walk_huge(heap, visitor);
}

namespace {

bool tell_all(const SlabHeader* slab, const Visitor& visitor) {
  for (Live live; slab != nullptr; slab = slab->next) {
    live.carved = 0;
    look_at(slab, &live);
    if (!tell(live, visitor)) return false;
  }
  return true;
}

}  // namespace

void walk_held(const UserHeap* heap, const Visitor& visitor) {
  for (const SlabList& slabs : heap->open) {
    if (!tell_all(slabs.front(), visitor)) return;
  }
  if (!tell_all(heap->full.front(), visitor)) return;
  for (const SlabHeader* large = heap->large.front(); large != nullptr; large = large->next) {
    if (visitor.visit(visitor.context, large->start, large->bytes) == 0) return;
  }
}

namespace {

// Is the slab the one that its heap, whose record stays for ever, hands out blocks from?
HUMMOCK_RACY bool is_current(const SlabHeader* slab) {
  if (slab->kind == Kind::own_slab) return slab->user->open[slab->size_class].front() == slab;
  const uintptr_t owner = owner_of(slab) & ~kDirect;
  if (owner == kNobody || owner == kShared) return false;
  return reinterpret_cast<const Heap*>(owner)->current[slab->size_class] == slab;
}

HUMMOCK_RACY int used_percent(const SlabHeader* slab) {
  const size_t capacity = slab->capacity;
  if (capacity == 0) return 0;
  const size_t percent = slab::count_live(slab) * 100 / capacity;
  return percent > 100 ? 100 : static_cast<int>(percent);
}

HUMMOCK_RACY bool is_live(const SlabHeader* slab, const void* p) {
  const auto block = static_cast<char*>(const_cast<void*>(p));
  return slab::is_block(slab, p) && !slab::is_gone(slab, p) && !has_link(slab, block, slab::is_tiny(slab));
}

}  // namespace

int utilisation(const void* p) {
  const SlabHeader* header = p != nullptr ? pages::find_slab(const_cast<void*>(p)) : nullptr;
  if (header == nullptr) return -1;
  const Kind kind = kind_of(header);
  if (kind == Kind::large || kind == Kind::huge || kind == Kind::guarded)
    return p == header->start ? 100 : -1;
  if ((kind != Kind::slab && kind != Kind::own_slab) || !is_live(header, p)) return -1;
  return is_current(header) ? 100 : used_percent(header);
}

}  // namespace hummock::heap
