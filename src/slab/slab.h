// One slab: carving, its free list, draining what other threads freed, and the checks that find misuse. For
// all functions except push_remote the slab must be the caller's (owned, or shared under its shard).
#ifndef HUMMOCK_SLAB_SLAB_H
#define HUMMOCK_SLAB_SLAB_H

#include "base/message.h"
#include "pages/pages.h"
#include "slab/free_block.h"
#include "slab/remote.h"

namespace hummock::slab {

// Lists of a slab and of its bin end in the bin itself.
inline void* end_of(const SlabHeader* slab) {
  return slab->bin;
}

// Makes a slab of the class from fresh slots; not owned yet. Null: no memory.
SlabHeader* create(unsigned size_class, Kind kind);

// Gives the slots back. Every block is free.
void destroy(SlabHeader* slab);

// Free blocks, linked as a bin's are. They count as in use.
struct List {
  void* first;  // null: there is none
  unsigned count;
};

// Free blocks of a slab that a heap took, and has not yet linked up with the bin's: what other threads freed,
// or the slab's own list. They count as in use.
struct Rest {
  void* first;
  uint32_t count;
  uint32_t kind;  // kRemote or 0: see free_block.h
};

// The next of them as a bin's list, 16 KiB of them at most, or one; `rest`, whose count is not 0, keeps the
// others. All are the slab's.
List take_some(SlabHeader* slab, Rest* rest);

// Some free blocks, that count as in use from now on; none when the slab is full. Order: what the owner
// freed, then what others freed, of which `rest` has what is not handed out now, then memory never used: a
// page of it at most. Bounded steps.
List take_blocks(SlabHeader* slab, Rest* rest);

// So many free blocks make it worth while to look at the slab again, or to take it over.
inline uint32_t worth_while(const SlabHeader* slab) {
  return slab->capacity < 4 ? 1 : slab->capacity / 4u;
}

// Writes the owner in every slot of the slab, and the thread whose frees take the fast path.
inline void set_owner(SlabHeader* slab, uintptr_t owner, uintptr_t freer = 0) {
  for (unsigned i = 0; i < slab->slots; ++i) {
    set_relaxed(slab[i].owner, owner);
    set_relaxed(slab[i].freer, freer);
  }
}

// Has each free of the slab's blocks look closely, or no more. A slab with pages that are gone stays closed:
// a free block there has lost its link.
inline void close_frees(SlabHeader* slab) {
  for (unsigned i = 0; i < slab->slots; ++i) set_relaxed(slab[i].free_bound, uint64_t{0});
}
void open_frees(SlabHeader* slab);

// From now on the slab's lists are for this bin. What stood in its free list is in use, and `rest`'s.
void set_bin(SlabHeader* slab, heap::Bin* bin, Rest* rest);

// What other threads freed: a chain, and the blocks of pages that are gone. The count includes both.
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

// Joins what others freed to the slab's free blocks, and tells how many. O(those).
uint32_t drain(SlabHeader* slab);

// ---- Links, whatever the class. Null or end_of(slab): there is no next; kNoLink: there was one once.
inline bool is_tiny(const SlabHeader* slab) {
  return slab->size_class == kTiny;
}

// `next` stands in the same slab where blocks are tiny; else anywhere.
void link_tiny(const SlabHeader* slab, void* block, const void* next);
inline void link_free(const SlabHeader* slab, void* block, const void* next) {
  if (__builtin_expect(is_tiny(slab), false)) return link_tiny(slab, block, next);
  set_next(block, next);
}
inline void link_remote(const SlabHeader* slab, void* block, const void* next) {
  if (__builtin_expect(is_tiny(slab), false)) return link_tiny(slab, block, next);
  set_next_remote(block, next);
}
void* next_free_tiny(const SlabHeader* slab, void* block);
inline void* next_free(const SlabHeader* slab, void* block) {
  return __builtin_expect(is_tiny(slab), false) ? next_free_tiny(slab, block) : next_of(block);
}
void* next_remote_free(const SlabHeader* slab, void* block);

// Says what is wrong with a slab's lists, in one line, and aborts.
[[noreturn]] void corrupted(const SlabHeader* slab, const char* what);

// Puts a block on the free list, counting it as not in use.
inline void put_block(SlabHeader* slab, void* block) {
  link_free(slab, block, slab->free);
  slab->free = block;
  --slab->live;
}

// Puts a list of them there.
inline void put_run(SlabHeader* slab, void* first, void* last, uint32_t count) {
  if (count > slab->live) corrupted(slab, "a block was freed twice");
  link_free(slab, last, slab->free);
  slab->free = first;
  slab->live = static_cast<uint16_t>(slab->live - count);
}

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

// Pages that were given back, a bit each (slab/gone.h). Racy where the slab is somebody else's, as the next.
unsigned gone_pages(const SlabHeader* slab);
// The block begins in such a page, so it is free.
bool is_gone(const SlabHeader* slab, const void* block);
// Blocks that are handed out, or in a thread's cache. Racy likewise: a figure.
size_t count_live(const SlabHeader* slab);

// `slot` is p's, `multiplier` its class's: p is the start of a carved block. A closed slab says no. Blocks
// that do not stand at multiples are counted from the slab's start.
__attribute__((always_inline)) inline bool is_start_in_slab(const SlabHeader* slot, uint64_t multiplier,
                                                            const void* p) {
  const SlabHeader* slab = slot - slot->back;
  const auto offset = static_cast<uint64_t>(static_cast<const char*>(p) - slab->start);
  return multiplier < multiplier_of(kMaxAtMultiples) && offset * multiplier < relaxed(slot->free_bound);
}
__attribute__((always_inline)) inline bool is_start(const SlabHeader* slot, uint64_t multiplier,
                                                    const void* p) {
  return reinterpret_cast<uintptr_t>(p) * multiplier < relaxed(slot->free_bound) ||
         is_start_in_slab(slot, multiplier, p);
}

// ---- Is a block free? --------------------------------------------------------------------------

// False: certainly not. True: look closely, with is_free of heap/diagnose.h.
inline bool looks_free(const SlabHeader* slab, void* block) {
  return is_tiny(slab) ? tiny_next(block) <= kTinyEnd : looks_free(block);
}
// Anything but a block of the slab that looks free breaks a list of the slab's.
inline bool is_listable(const SlabHeader* slab, void* block) {
  return stands_in(slab, block) && is_block(slab, block) && looks_free(slab, block);
}
// Marks a block of which others may say so at the same time: false when it was marked already. Relaxed: what
// is made of it is told by push_remote.
bool mark_free(const SlabHeader* slab, void* block);

struct Pushed {
  uint64_t old;     // the remote word that was replaced
  bool must_queue;  // the queued flag was set by this push: the caller must queue the slab
};

// Adds `count` linked blocks to the remote word. Sets the queued flag when the slab is owned, not queued,
// and `notify` is reached. With `gone` (kGone, kTurn) the count has the blocks of gone.remote, too, and the
// chain may be null.
Pushed push_remote(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone = 0);

// Blocks that can be had without anybody freeing more, once what others freed is drained.
inline uint32_t available(const SlabHeader* slab) {
  return static_cast<uint32_t>(slab->capacity - slab->live);
}
inline uint32_t returned_count(const SlabHeader* slab) {
  return count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED));
}

// Aborts with a message unless so many blocks are all that was in use.
void check_empty(const SlabHeader* slab, const Returned& returned);

// When `block` is not the start of a carved block of the slab: `end` with a message.
using End = void (*)(const base::Line&);
void check_block(const SlabHeader* slab, const void* block, const char* call, End end = base::die);

// `call` was given a block that is free already: says so, with `end`.
void double_free(const SlabHeader* slab, const void* block, const char* call, End end = base::die);

// Ends each message about misuse.
inline constexpr const char* kSeeMore = "; HUMMOCK_CHECKED=on tells more";

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_SLAB_H
