// One slab: carving, its free list, draining what others freed, and the checks that find misuse.
// All functions but push_remote need the slab to be the caller's (owned, or shared under its shard).
#ifndef HUMMOCK_SLAB_SLAB_H
#define HUMMOCK_SLAB_SLAB_H

#include "base/message.h"
#include "pages/pages.h"
#include "slab/remote.h"
#include "slab/size_class.h"

namespace hummock::slab {

inline void*& link_of(void* block) {
  return *static_cast<void**>(block);
}

// The second word of a free block is its stamp: the address of the bin that it is, or will be, handed out
// from. Handing out clears it, so a block that stands in a list twice is found when it is to be handed out
// again. Blocks of 8 bytes have none.
inline bool has_stamp(const SlabHeader* slab) {
  return slab->size_class != kTiny;
}
inline uintptr_t& stamp_of(void* block) {
  return static_cast<uintptr_t*>(block)[1];
}

// Lists of a slab and of its bin end in the bin itself.
inline void* end_of(const SlabHeader* slab) {
  return slab->bin;
}

// Makes a slab of the class from fresh slots; not owned yet. Null: no memory.
SlabHeader* create(unsigned size_class, Kind kind);

// Gives the slots back. Every block is free.
void destroy(SlabHeader* slab);

// Some free blocks, that count as in use from now on; null when the slab is full. Order: what the owner
// freed, what others freed, then memory never used: 8 KiB of it at most. O(1), but for the last two.
void* take_blocks(SlabHeader* slab);

// So many free blocks make it worth while to look at the slab again, or to take it over.
inline uint32_t worth_while(const SlabHeader* slab) {
  return slab->capacity < 4 ? 1 : slab->capacity / 4u;
}

// Writes the owner in every slot of the slab.
inline void set_owner(SlabHeader* slab, uintptr_t owner) {
  for (unsigned i = 0; i < slab->slots; ++i) set_relaxed(slab[i].owner, owner);
}

// The slab's free blocks become those of another bin. O(blocks) when it has any.
void set_bin(SlabHeader* slab, heap::Bin* bin);

// What others freed: a chain, and the blocks of pages that are gone. The count is of both.
struct Returned {
  void* chain;
  uint32_t count;
  uint16_t gone;
};

// Takes it from the remote word, of which the flags `left` stay, if there are at least so many blocks. For
// who owns the slab, or holds its shard.
bool take_remote(SlabHeader* slab, uint64_t left, uint32_t least, Returned* returned);
inline Returned take_remote(SlabHeader* slab, uint64_t left = kQueued | kSharedBit) {
  Returned returned = {};
  take_remote(slab, left, 0, &returned);
  return returned;
}

// Joins it to the slab's free blocks; the caller sees to what follows.
void drain(SlabHeader* slab, const Returned& returned);

// Puts a block on the free list, counting it as not in use.
inline void put_block(SlabHeader* slab, void* block) {
  link_of(block) = slab->free;
  if (has_stamp(slab)) stamp_of(block) = reinterpret_cast<uintptr_t>(slab->bin);
  slab->free = block;
  slab->live_sum -= weight_of(block);
}

struct Pushed {
  uint64_t old;     // the remote word that was replaced
  bool must_queue;  // the queued flag was set by this push: the caller must queue the slab
};

// The stamp of a block that another thread freed, until it is drained.
inline uintptr_t mark_of(const void* block) {
  return ~reinterpret_cast<uintptr_t>(block);
}
inline void mark(const SlabHeader* slab, void* block) {
  if (has_stamp(slab)) stamp_of(block) = mark_of(block);
}

// Adds `count` linked blocks to the remote word. Sets the queued flag when the slab is owned, not queued,
// and `notify` is reached. With `gone` (kGone, kTurn) the count has the blocks of gone.remote, too, and the
// chain may be null.
Pushed push_remote(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone = 0);

// Blocks that can be had without anybody freeing more.
inline uint32_t available(const SlabHeader* slab) {
  return slab->capacity - static_cast<uint32_t>(slab->used());
}

// Aborts with a message unless what others freed is all that was in use.
void check_empty(const SlabHeader* slab, const Returned& returned);

inline bool stands_in(const SlabHeader* slab, const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - slab->start) < slab->bytes;
}

// `p` is the start of a block that was carved. `row` is the slab's.
inline bool is_block(const SlabHeader* slab, const SizeClass& row, const void* p) {
  const size_t offset = static_cast<size_t>(static_cast<const char*>(p) - slab->start);
  const size_t index = block_index(row, offset);
  return index < relaxed(slab->carved) && index * row.block_size == offset;
}
inline bool is_block(const SlabHeader* slab, const void* p) {
  return is_block(slab, row_of(slab), p);
}

// When `block` is not the start of a carved block of the slab: `end` with a message.
using End = void (*)(const base::Line&);
void check_block(const SlabHeader* slab, const void* block, const char* call, End end = base::die);

// Says what is wrong with a slab's lists, in one line, and aborts.
[[noreturn]] void corrupted(const SlabHeader* slab, const char* what);
[[noreturn]] void double_free(const void* block);

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_SLAB_H
