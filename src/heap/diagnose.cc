#include "heap/diagnose.h"

#include <stdlib.h>

#include "base/message.h"
#include "heap/magazine.h"
#include "heap/modes.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/gone.h"

namespace hummock::heap {

bool is_waiting(uintptr_t link) {
  const uintptr_t address = link ^ slab::secret();
  return (address & kWaiting) != 0 && is_bin(reinterpret_cast<const void*>(address - kWaiting));
}

namespace {

// A block of some slab of the same class.
__attribute__((no_sanitize("thread"))) bool is_of_class(const SlabHeader* slab, const void* block) {
  const SlabHeader* there = pages::find_slab(block);
  return there != nullptr && there->size_class == slab->size_class && slab::stands_in(there, block) &&
         slab::is_block(there, block);
}

}  // namespace

bool leads_on(const SlabHeader* slab, uintptr_t link) {
  const void* next = reinterpret_cast<const void*>(link ^ slab::secret());
  return next == nullptr || is_bin(next) || is_waiting(link) || is_of_class(slab, next);
}

using base::Line;

void say_inside(Line& line, const pages::Extent& block, const void* p) {
  const auto* at = static_cast<const char*>(p);
  const bool before = at < block.start;
  const auto distance = static_cast<size_t>(before ? block.start - at : at - block.start);
  line << "points " << distance << (distance == 1 ? " byte " : " bytes ")
       << (before ? "before a block of " : "into a block of ") << block.bytes << " bytes at "
       << static_cast<const void*>(block.start);
}

namespace {

bool is_canonical(const void* p) {
  return uint64_t{reinterpret_cast<uintptr_t>(p)} >> os::kAddressBits == 0;
}

// Are the words of a free block that has this link as they should be?
bool is_linked(void* block, uintptr_t link) {
  return slab::agree(block, link, 0) || slab::agree(block, link, slab::kRemote) || is_waiting(link);
}

constexpr unsigned kMostWalked = 1 << 16;  // lists of other threads may change while they are walked

// Racy: `slab` may be another thread's. Each block is checked before it is read, and slabs stay mapped.
__attribute__((no_sanitize("thread"))) bool stands_in_list(const SlabHeader* slab, const void* p,
                                                           void* block) {
  for (unsigned left = kMostWalked; left != 0; --left) {
    if (block == p) return true;
    if (!is_of_class(slab, block)) return false;
    block = reinterpret_cast<void*>(relaxed(slab::link_word(block)) ^ slab::secret());
  }
  return false;
}

__attribute__((no_sanitize("thread"))) bool is_listed_in(const Heap* heap, const SlabHeader* slab,
                                                         const void* p) {
  const unsigned size_class = slab->size_class;
  const Bin& bin = heap->bins[size_class];
  if (stands_in_list(slab, p, bin.blocks)) return true;
  const slab::Rest& rest = heap->rest[size_class];
  if (rest.count != 0 && stands_in_list(slab, p, rest.first)) return true;
  const slab::OwnPurge& purge = heap->own_purge;
  // In this order, because blocks go from the lists to the set.
  if (stands_in_list(slab, p, purge.list()) || stands_in_list(slab, p, purge.chain()) || purge.holds(slab, p))
    return true;
  const RemoteCache& remote = heap->remote;
  for (unsigned i = 0; i < remote.count && i < kRemoteBlocks; ++i) {
    if (remote.blocks[i] == p) return true;
  }
  for (unsigned i = remote.next_chain; i < remote.chain_count && i < kRemoteBlocks; ++i) {
    const RemoteChain& chain = remote.chains[i];
    if (chain.slab == slab && stands_in_list(slab, p, chain.first)) return true;
  }
  return false;
}

// Is the block in a list of its slab or of any heap? Slow: only for blocks that look free in every other way.
__attribute__((no_sanitize("thread"))) bool is_listed(const SlabHeader* slab, const void* p) {
  if (stands_in_list(slab, p, slab->free)) return true;
  // acquire: pairs with the release of push_remote.
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  if (stands_in_list(slab, p, slab::chain_of(word))) return true;
  if (slab::is_held(slab, p) || stands_in_list(slab, p, slab::held_list())) return true;
  for (const Heap* heap = all_heaps(); heap != nullptr; heap = heap->next_record) {
    if (is_listed_in(heap, slab, p)) return true;
  }
  return false;
}

// The slab has ended since we looked at p, so another free of p came before. A thread that finishes a shared
// slab clears the bit first and the owner a moment later; one that gives a slab away does it the other way
// round.
bool has_ended(const SlabHeader* slab) {
  for (unsigned tries = 16; tries != 0; --tries) {
    const Kind kind = kind_of(slab);
    const uintptr_t owner = owner_of(slab);
    if (kind == Kind::own_slab) return false;
    if (kind != Kind::slab || owner == kNobody) return true;
    // acquire: shows what was written before the bit was cleared.
    const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
    if (owner != kShared || (word & slab::kSharedBit) != 0) return false;
    os::pause_cpu();
  }
  return false;
}

// The block looks free: is it? A free writes the link first, the check next, and then adds the block to a
// list: a few instructions. If that takes longer, because its thread is not running, the block is reported
// when the two frees meet.
bool is_free(const SlabHeader* slab, const void* p, bool waits) {
  if (slab::is_tiny(slab)) return true;  // its link is a number of the slab's, and bound to its address
  void* block = const_cast<void*>(p);
  unsigned looks = waits ? 2 : 1;
  for (unsigned tries = waits ? 16 : 1; tries != 0; --tries) {
    const uintptr_t link = relaxed(slab::link_word(block));
    if (is_linked(block, link)) {
      if (!leads_on(slab, link)) return false;
      if (is_listed(slab, p) || has_ended(slab)) return true;
      if (--looks == 0) return false;
    }
    if (waits) os::pause_cpu();
  }
  return has_ended(slab);
}

}  // namespace

bool was_freed(const SlabHeader* slab, void* block, bool waits) {
  if (slab::looks_free(slab, block) && is_free(slab, block, waits)) return true;
  // The page last: if it goes meanwhile, the other looks see zeros, as in a live block. While it goes or
  // comes back it is noted in one of three places, and for a few instructions in none; then the slab is
  // closed.
  for (unsigned tries = waits && !slab::is_tiny(slab) ? 4 : 1;; --tries) {
    if (slab::is_gone(slab, block)) return true;
    if (tries == 1 || relaxed(slab->free_bound) != 0) return false;
    if (relaxed(slab::link_word(block)) != 0 || relaxed(slab::check_word(block)) != 0) return false;
    os::pause_cpu();
  }
}

void check_live(const char* call, const SlabHeader* slab, const void* p, slab::End end) {
  slab::check_block(slab, p, call, end);
  if (was_freed(slab, const_cast<void*>(p), false)) slab::double_free(slab, p, call, end);
}

void bad_pointer(const char* call, const void* p, slab::End end) {
  modes::guards::tell_misuse(call, p, end);
  Line line;
  line << call << "(" << p << "): ";
  const pages::Extent around = pages::enclosing_span(p);
  if (around.start != nullptr && around.start != p) {
    say_inside(line, around, p);
  } else if (around.start != nullptr || pages::find_in_region(p) != nullptr) {
    line << "no block is live there: freed before, or never handed out";
  } else if (!is_canonical(p)) {
    line << "not an address at all";
  } else {
    line << "not a block of this allocator (stack, static, other memory, or freed and given back)";
  }
  end(line << slab::see_more());
  abort();
}

void other_heap(const char* call, const SlabHeader* header, const void* p) {
  const Kind kind = kind_of(header);
  if (kind == Kind::slab || kind == Kind::own_slab) check_live(call, header, p);
  base::refuse(Line() << call << "(" << p << "): the block is of another heap" << slab::see_more());
  abort();
}

void no_such_heap(const char* call, const UserHeap* heap, slab::End end) {
  end(Line() << call << "(" << static_cast<const void*>(heap)
             << "): there is no heap: destroyed before, or never made" << slab::see_more());
  abort();
}

void bad_bin(const void* p, unsigned size_class) {
  void* block = const_cast<void*>(p);
  Line line;
  line << "heap corruption among free blocks of " << slab::kTable.row[size_class].block_size << " bytes: ";
  SlabHeader* header = pages::find_slab(block);
  const bool small =
      header != nullptr && (kind_of(header) == Kind::slab || kind_of(header) == Kind::own_slab);
  if (!small || !slab::is_block(header, block)) {
    line << "a block was written to, after it was freed or past the end of another: it leads to " << p;
  } else if (!slab::looks_free(header, block)) {
    line << p << " was freed twice, or written to, after it was freed or past the end of another block";
  } else if (slab::next_remote(block) != slab::kNoLink || is_waiting(relaxed(slab::link_word(block)))) {
    line << p << " was freed by two threads at once";
  } else {
    line << p << " was written to, after it was freed or past the end of another block";
  }
  base::die(line << slab::see_more());
}

void check_claim(const char* call, const void* p, size_t room, size_t claimed, size_t align) {
  const bool aligned = align == 0 || reinterpret_cast<uintptr_t>(p) % align == 0;
  // An aligned block may stand in a class of the next power of two: only its upper bound is sure.
  const size_t least = align > slab::kStep || relaxed(some_stayed) ? 0 : room - room / 5;
  const size_t rounding = room > slab::kMaxSmall ? kSlotSize : slab::kStep;
  const bool fits = claimed <= room && claimed + rounding >= least;
  if (aligned && fits) return;
  Line line;
  line << call << "(" << p << "): the block has room for " << room
       << " bytes, it cannot have been allocated with ";
  if (!aligned) {
    line << "alignment " << align;
  } else {
    line << "size " << claimed;
  }
  base::die(line);
}

}  // namespace hummock::heap
