// One slab: carving, its free list, draining what other threads freed, and the checks that find misuse. The
// slab must be the caller's (owned, or shared under its shard's lock), except for push_remote.
#ifndef HUMMOCK_SLAB_SLAB_H
#define HUMMOCK_SLAB_SLAB_H

#include "base/message.h"
#include "base/options.h"
#include "os/os.h"
#include "pages/pages.h"
#include "slab/free_block.h"
#include "slab/remote.h"

namespace hummock::slab {

// The lists of a slab and of its bin end in the bin itself.
inline void* end_of(const SlabHeader* slab) {
  return slab->bin;
}

// Makes a slab of the class from free slots. Nobody owns it yet. Null: no memory.
SlabHeader* create(unsigned size_class, Kind kind);

// Returns the slots to the page heap. Every block is free.
void destroy(SlabHeader* slab);

// Free blocks, linked as a bin's are. They count as in use.
struct List {
  void* first;  // null: there is none
  unsigned count;
};

// Free blocks that a heap took from a slab and has not put into the bin yet: what other threads freed, or the
// slab's own list when the slab came from another heap. They count as in use.
struct Rest {
  void* first;
  uint32_t count;
  uint16_t ready;  // so many of them malloc may take one by one: see take_one()
  enum class Links : uint16_t {
    old_bin,  // as a bin's, but the list ends in the bin of an earlier owner
    remote,   // of other threads' frees: see free_block.h
  } links;
};

// How many blocks are in the slab's own list.
uint32_t count_own(const SlabHeader* slab);

// Takes blocks that the owner freed, as a bin's list: 16 KiB of them or one; all, if the list is no longer
// than twice that. None if there is none. They count as in use from now on.
List take_own(SlabHeader* slab);

// Fills `rest`, which is empty, with what others freed. False: there is nothing. The blocks count as in use
// from now on. Bounded steps.
bool gather(SlabHeader* slab, Rest* rest);

// Takes the next blocks of `rest`, which is not empty and of this slab, as a bin's list: at most 16 KiB of
// them, or one.
List take_some(SlabHeader* slab, Rest* rest);

// Lets take_one() have as many of the blocks as take_some() would take. How many; 0: not from such a list.
uint32_t make_ready(const SlabHeader* slab, Rest* rest);

// Takes the first block that is ready. Fetches the line of the next one, which another processor has, so that
// it comes while the program works with this block. Null: none is ready, or the block's link or bin is wrong;
// then none is ready any more, and take_some() reports what is wrong.
inline void* take_one(Rest* rest, const heap::Bin* bin) {
  if (rest->ready == 0) return nullptr;
  void* block = rest->first;
  const uintptr_t link = pages::header_of(block)->bin == bin ? relaxed(link_word(block)) : 0;
  void* next = reinterpret_cast<void*>(link ^ secret());
  const bool last = rest->count == 1;
  if (__builtin_expect(link == 0 || !agree(block, link, kRemote) || last != (next == nullptr), false)) {
    rest->ready = 0;
    return nullptr;
  }
  os::fetch_for_write(next);
  rest->first = next;
  --rest->count;
  --rest->ready;
  check_word(block) = link;  // no live block's is of the kind kRemote
  link_word(block) = 0;
  return block;
}

// Takes free blocks of a page that is gone, or else memory that was never used. They count as in use from now
// on; none if there is neither. Bounded steps. `many`: much is wanted, as another slab or the first part of
// this one is used up.
List take_fresh(SlabHeader* slab, bool many);

// So many free blocks make the slab worth another look, or worth adopting.
inline uint32_t worth_while(const SlabHeader* slab) {
  return slab->capacity < 4 ? 1 : slab->capacity / 4u;
}

// From how many blocks on that others freed the slab is posted to its owner.
inline void renew_notify(SlabHeader* slab) {
  const uint32_t least = worth_while(slab);
  const uint32_t live = slab->live;
  // Few blocks are in use, and may all come back: at half of them, and again at half of what is left.
  set_relaxed(slab->notify, live != 0 && live < least ? (live + 1) / 2 : least);
}

// Writes the owner, and the thread whose frees take the fast path, into every slot of the slab.
inline void set_owner(SlabHeader* slab, uintptr_t owner, uintptr_t freer = 0) {
  for (unsigned i = 0; i < slab->slots; ++i) {
    set_relaxed(slab[i].owner, owner);
    set_relaxed(slab[i].freer, freer);
  }
}

// A closed slab makes each of its frees look closely. A slab with pages that are gone stays closed, because
// free blocks there have lost their links.
inline void close_frees(SlabHeader* slab) {
  for (unsigned i = 0; i < slab->slots; ++i) set_relaxed(slab[i].free_bound, uint64_t{0});
}
void open_frees(SlabHeader* slab);

// From now on the slab's lists are for this bin. The blocks of its free list move to `rest` and are in use.
void set_bin(SlabHeader* slab, heap::Bin* bin, Rest* rest);

// Bytes of the blocks that others freed, that nobody has taken, and that are in no page that is gone. Atomic,
// relaxed: a figure. It may be too low, and even below 0, because threads add what they freed in steps
// (settle_freed in heap/refill.h).
extern base::OwnLine<ptrdiff_t> returned_bytes;
inline void note_returned(ptrdiff_t bytes) {
  __atomic_fetch_add(&returned_bytes.value, bytes, __ATOMIC_RELAXED);
}
// The same for so many blocks of a slab that are taken, or whose pages go.
inline void note_taken(const SlabHeader* slab, uint32_t blocks) {
  if (blocks != 0) note_returned(-static_cast<ptrdiff_t>(size_t{blocks} * row_of(slab).block_size));
}

// What other threads freed: a chain, and the blocks of pages that are gone. The count includes both.
struct Returned {
  void* chain;
  uint32_t count;
  uint16_t gone;
};

// Takes them from the remote word if they are at least so many; the flags `left` stay. For the thread that
// owns the slab, or holds its shard's lock.
bool take_remote(SlabHeader* slab, uint64_t left, uint32_t least, Returned* returned);
inline Returned take_remote(SlabHeader* slab, uint64_t left = kQueued | kSharedBit) {
  Returned returned = {};
  take_remote(slab, left, 0, &returned);
  return returned;
}

// Adds what others freed to the slab's free list, and returns how many. Linear in their number: malloc and
// free do not drain more than kMostDrained.
uint32_t drain(SlabHeader* slab);
inline constexpr uint32_t kMostDrained = 256;

// ---- Links, whatever the class. Null or end_of(slab): there is no next block; kNoLink: the link is broken.
inline bool is_tiny(const SlabHeader* slab) {
  return slab->size_class == kTiny;
}

// For tiny blocks `next` must be in the same slab.
inline void link_tiny(const SlabHeader* slab, void* block, const void* next) {
  const bool last = next == nullptr || next == end_of(slab);
  set_tiny_next(block, last ? kTinyEnd : tiny_number(next));
}
inline void link_free(const SlabHeader* slab, void* block, const void* next) {
  if (__builtin_expect(is_tiny(slab), false)) return link_tiny(slab, block, next);
  set_next(block, next);
}
// The slab may be another thread's, so its end, which its owner sets, is not looked at. Null: there is no
// next. The first is for blocks of 8 bytes that mark_free() marked, and aborts if somebody else freed the
// block since.
void link_remote_tiny(const SlabHeader* slab, void* block, const void* next);
inline void link_remote(const SlabHeader* slab, void* block, const void* next) {
  __builtin_expect(is_tiny(slab), false) ? link_remote_tiny(slab, block, next) : set_next_remote(block, next);
}
// `end` is what the list ends in; kNoLink for a number that is no block's.
inline void* next_tiny(void* block, uint64_t number, void* end) {
  return number < kTinyEnd ? tiny_in_slab_of(block, number) : number == kTinyEnd ? end : kNoLink;
}
inline void* next_free_tiny(const SlabHeader* slab, void* block) {
  return next_tiny(block, tiny_next(block), end_of(slab));
}
inline void* next_free(const SlabHeader* slab, void* block) {
  return __builtin_expect(is_tiny(slab), false) ? next_free_tiny(slab, block) : next_of(block);
}
void* next_remote_free(const SlabHeader* slab, void* block);

// Reports in one line what is wrong with a slab's lists, and aborts.
[[noreturn]] void corrupted(const SlabHeader* slab, const char* what);

// Puts a block on the free list, counting it as not in use.
inline void put_block(SlabHeader* slab, void* block) {
  link_free(slab, block, slab->free);
  slab->free = block;
  --slab->live;
}

// The same for a list of blocks.
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
  // As for addresses: see slab/size_class.h.
  const auto offset = static_cast<uint64_t>(static_cast<const char*>(p) - slab->start);
  return offset * row.multiplier < relaxed(slab->carved) * row.step;
}
inline bool is_block(const SlabHeader* slab, const void* p) {
  return is_block(slab, row_of(slab), p);
}

// Pages that are gone, a bit each (slab/gone.h). Racy if the slab is another thread's, as are the next two.
unsigned gone_pages(const SlabHeader* slab);
// Does the block begin in such a page? Then it is free.
bool is_gone(const SlabHeader* slab, const void* block);
// Blocks that are handed out, or in a thread cache: a figure.
size_t count_live(const SlabHeader* slab);

// Is p the start of a carved block? `slot` is p's, `multiplier` its class's. A closed slab says no. In slabs
// whose blocks are not at multiples of their size, the distance counts from the slab's start.
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

// False: certainly not. True: check closely, with is_free of heap/diagnose.h.
inline bool looks_free(const SlabHeader* slab, void* block) {
  return is_tiny(slab) ? is_tiny_link(tiny_next(block)) : looks_free(block);
}
// May the block be in a list of the slab? Anything else there means that the list is broken.
inline bool is_listable(const SlabHeader* slab, void* block) {
  return stands_in(slab, block) && is_block(slab, block) && looks_free(slab, block);
}
// Marks a block as free; others may do so at the same time. False: it was marked already. Relaxed:
// push_remote publishes what follows.
bool mark_free(const SlabHeader* slab, void* block);

struct Pushed {
  uint64_t old;     // the remote word that was replaced
  bool must_queue;  // the queued flag was set by this push: the caller must queue the slab
};

// Adds `count` linked blocks to the remote word. Sets the queued flag if the slab is owned and not queued,
// and `notify` is reached. With `gone` (kGone, kTurn) the count includes the blocks of gone.remote, and the
// chain may be null.
__attribute__((always_inline)) inline Pushed push_remote(SlabHeader* slab, void* first, void* last,
                                                         uint32_t count, uint64_t gone = 0) {
  uint64_t old = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  for (;;) {
    void* chain = chain_of(old);
    if (first != nullptr) {
      link_remote(slab, last, chain);
      chain = first;
    }
    const uint32_t now = count_of(old) + count;
    const uint64_t flags = old & (kQueued | kSharedBit);
    const bool queue = flags == 0 && now >= __atomic_load_n(&slab->notify, __ATOMIC_RELAXED);
    const uint64_t fresh = pack(chain, now, (queue ? kQueued : flags) | (old & kGoneBits) | gone);
    // release: pairs with take_remote's acquire (the links). acquire: what the giver wrote before it
    // set the shared bit (owner, shared_live, notify) is seen by whoever finds the bit.
    if (__atomic_compare_exchange_n(&slab->remote, &old, fresh, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return {old, queue};
    }
  }
}

// Blocks that are free, or not carved yet.
inline uint32_t available(const SlabHeader* slab) {
  return static_cast<uint32_t>(slab->capacity - slab->live);
}
inline uint32_t returned_count(const SlabHeader* slab) {
  return count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED));
}
// Aborts with a message if blocks came back where none is in use, or where frees take another way.
inline void check_none_returned(const SlabHeader* slab) {
  if (returned_count(slab) != 0) corrupted(slab, "a block was freed twice, by different threads");
}

// Aborts with a message unless these are all blocks that were in use. If they are few, looks at each.
void check_empty(SlabHeader* slab, const Returned& returned);

// Calls `end` with a message unless `block` is the start of a carved block of the slab.
using End = void (*)(const base::Line&);
void check_block(const SlabHeader* slab, const void* block, const char* call, End end = base::die);

// `call` was given a block that is already free: calls `end` with a message.
void double_free(const SlabHeader* slab, const void* block, const char* call, End end = base::die);

// Others freed `count` more blocks: did that leave so few in use that half of the pages may be free, or half,
// a quarter, … as few? A guess, because the slab is not the caller's.
bool has_emptied(const SlabHeader* slab, uint32_t count);

// Ends each message about misuse.
inline const char* see_more() {
  return options::values.checked ? "" : "; HUMMOCK_CHECKED=on tells more";
}

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_SLAB_H
