// A thread's heap, and the functions that the faces call.
#ifndef HUMMOCK_HEAP_HEAP_H
#define HUMMOCK_HEAP_HEAP_H

#include "base/list.h"
#include "hummock/hummock.h"
#include "hummock/record.h"
#include "os/lock.h"
#include "os/thread.h"
#include "slab/own_purge.h"
#include "slab/slab.h"

namespace hummock::heap {

using SlabList = base::List<SlabHeader, &SlabHeader::next, &SlabHeader::prev>;

// The remote cache: blocks of other heaps that this thread freed, oldest first. When there are enough, chains
// are made of them, one for each slab, and handed over, a few at a time. The more blocks have come together,
// the longer are the chains, and the line of a slab's remote word moves between processors once for each.
inline constexpr unsigned kRemoteBlocks = 128;
inline constexpr uint32_t kRemoteBytes = 32 << 10;  // from this many bytes on, there are enough

// The first block is the one that was freed last.
struct RemoteChain {
  SlabHeader* slab;
  void* first;
  void* last;
  uint32_t count;
  uint8_t next;  // the next chain of the same bucket
};

struct RemoteCache {
  uint32_t count, bytes;
  uint32_t at_ease;  // up to so many blocks nothing is to be done: none while chains wait, or a purge does
  void* blocks[kRemoteBlocks];
  SlabHeader* slabs[kRemoteBlocks];  // of each
  uint32_t checks[kRemoteBlocks];    // of each, its check word when it was freed: see heap/remote.cc
  // Not on the stack, because threads with short stacks call free, too.
  uint8_t next_chain,
      chain_count;  // these have not been handed over yet, from the first to before the second
  uint8_t in_bucket[kRemoteBlocks];  // the first chain of each bucket
  RemoteChain chains[kRemoteBlocks];
};

// A bin holds a magazine: a heap's cached blocks of one class. free puts a block there, and malloc takes the
// last one. Invariant: the blocks count as in use in their slabs, which this heap owns or owned; `limit` -
// `room` is their number. Each is linked (slab/free_block.h). The list ends in the bin itself, which never
// looks like a free block: the word where a block has its link is no address, and differs from the word
// before it.
struct Bin {
  void* blocks = this;
  int32_t room = 0;           // how many more blocks there is room for; below 0: there are too many
  int16_t limit = 0;          // the most blocks that may stay
  uint16_t no_link = 0xffff;  // with the two before it: no address. Of 32 bits `room` alone is none.
  uint64_t multiplier = 0;    // of the class: see slab/size_class.h
  uint32_t seen = 0;          // what first_blocks() was at the last look
  uint16_t direct = 1;        // blocks to be freed straight to slabs until the next look
  bool asked = false;         // malloc found nothing here since the last flush
  bool refused = false;       // the magazine was refused more room; until the next look
};
inline unsigned count_held(const Bin& bin) {
  return static_cast<unsigned>(bin.limit - bin.room);
}
static_assert(offsetof(Bin, room) == sizeof(void*), "where a block's link is");
static_assert(sizeof(Bin) == 32 || sizeof(void*) < 8, "two in a cache line");

// For a thread whose calls are recorded: see modes/recording.h.
struct Recorded {
  hummock_record_ring_t* ring;
  uint64_t tail;  // of the ring, when it was last full
  size_t size, align;
  uint8_t noted;  // what the call under way is, with these two; 0: what it seems
  bool gave_up;   // nobody reads the ring
  bool busy;      // calls are not to be recorded
};

// A round over the thread's own slabs: see heap/own_slabs.cc.
struct OwnRound {
  SlabHeader* next;     // of the class's list
  uint8_t size_class;   // 0: the round has not begun
  size_t bytes;         // free in the slabs' own lists, as far as this round has come
  size_t bytes_before;  // the same in the last round; it is in own_bytes
};

// A set of size classes.
struct ClassSet {
  uint64_t words[(slab::kClasses + 63) / 64];
  bool has(unsigned c) const { return (words[c / 64] >> (c % 64) & 1) != 0; }
  void add(unsigned c) { words[c / 64] |= uint64_t{1} << (c % 64); }
  void remove(unsigned c) { words[c / 64] &= ~(uint64_t{1} << (c % 64)); }
  // The first from `begin` on, to the end of the word of `end` - 1; 0: there is none.
  unsigned first_in(unsigned begin, unsigned end) const {
    for (unsigned c = begin; c < end; c = (c | 63) + 1) {
      const uint64_t left = words[c / 64] >> (c % 64);
      if (left != 0) return c + static_cast<unsigned>(__builtin_ctzll(left));
    }
    return 0;
  }
};

// Records are never unmapped, so a stale pointer to one does no harm.
struct Heap {
  Bin bins[slab::kClasses];             // by class; the first is of no class
  SlabHeader* current[slab::kClasses];  // where fresh blocks come from
  uintptr_t thread;                     // os::thread_address() of the thread whose heap this is; else 0, and
                                        // while hooks see its frees (modes/hooks.h)
  bool attached;                        // a thread's; not a sentinel
  SlabList partial[slab::kClasses];     // owned slabs with free blocks that are not current
  uint8_t refills;                      // modulo 256: see allocate_slow
  uint8_t shortages;                    // modulo 256: see refill
  uint8_t looks;                        // so many classes the next refill's sweep() looks at
  uint8_t near_cache;                   // of spans, where the processor is not known
  uint8_t hand;                         // the class that sweep() looked at last
  ClassSet holding;                     // that have free blocks or room for them, or had
  ClassSet keeps_full;                  // whose full slabs the heap keeps: see retire()
  uint32_t held;                        // bytes that the magazines have room for
  uint32_t earned;                      // of them, beyond what each thread may hold: see heap/allowance.h
  uint32_t handed_over;                 // bytes of others' blocks, since look_after_frees
  uint32_t uncounted;                   // of others' blocks, not yet in slab::returned_bytes
  uint32_t thread_id;                   // of the thread whose heap this is, as the system numbers it
  uint32_t forks;                       // what heap::forks was when it came; else the thread is not here
  uint32_t tag;                         // that hummock_tag() gave the thread
  uint8_t tag_row;                      // where its total is: see heap/tag.cc
  bool in_hook;                         // the thread runs a hook: see modes/hooks.h
  uint64_t drawn_bytes;   // taken from slabs, or as large blocks past the near caches, and not yet in
                          // the tag's total
  uint64_t drawn_blocks;  // the number of these and of near caches' spans
  uint64_t reused_bytes;  // of near caches' spans, likewise
  uint64_t until_sample;  // bytes; 0: to be drawn. Atomic, relaxed: others may set it to 0
  uint64_t sample_mean, sample_random;  // what it was drawn of
  SlabList full;                        // owned slabs without, all classes
  Heap* next_record;  // all records there ever were; written once, before the record is used
  Heap* next;         // pool of records. Guarded by its lock.
  Recorded record;
  OwnRound own_round;
  SlabHeader* posted;  // what was taken from the inbox and not yet looked at
  // Slabs with enough remote frees, pushed by others; kSealed when no thread is here to look. Atomic.
  alignas(64) SlabHeader* inbox;
  // From here on most heaps touch little.
  alignas(64) RemoteCache remote;
  slab::OwnPurge own_purge;
  slab::Rest rest[slab::kClasses];  // of one slab a class: comes before all other slabs. None once it ended.
};

inline SlabHeader* const kSealed = reinterpret_cast<SlabHeader*>(1);

extern Heap empty_heap;  // before a thread's first block
extern Heap ended_heap;  // after its end

// The calling thread's heap. A thread without one points to a sentinel whose bins are all empty, so the
// fast path needs no check. Initial-exec TLS: one load, and no trouble with dlopen at this size.
extern HUMMOCK_THREAD_POINTER(Heap, empty_heap) thread_heap;

// ---- What the faces call; semantics in hummock.h. `p` is not null unless said. -------------------

// allocate(size) and release(p): in heap/allocate.h and heap/release.h; release of null does nothing.
void* allocate_zeroed(size_t size);                 // the whole usable size
void* allocate_aligned(size_t align, size_t size);  // align: any power of two
void* reallocate(void* p, size_t size);             // size ≠ 0
void* reallocate_zeroed(void* p, size_t size);
size_t usable_size(const void* p);  // 0 for null
size_t good_size(size_t size);
void release_sized(void* p, size_t size);  // in heap/release.h; null does nothing, as with the next
void release_aligned_sized(void* p, size_t align, size_t size);
bool trim(size_t keep);
bool owns(const void* p);

// A hint: it is another one after most mallocs and frees of the class.
inline uint32_t first_blocks(const Heap* heap, unsigned size_class) {
  const auto rest = reinterpret_cast<uintptr_t>(heap->rest[size_class].first);
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(heap->bins[size_class].blocks) ^ rest);
}

// How many free blocks of a class a heap has, in its magazine and its rest.
inline size_t count_at_hand(const Heap* heap, unsigned size_class) {
  return count_held(heap->bins[size_class]) + heap->rest[size_class].count;
}
// The same for each class: of the calling thread, and of heaps whose threads have ended.
void count_resting(uint32_t* per_class);

// At the program's end: looks at a few blocks of each class that the calling thread freed lately. Aborts with
// a message if another thread freed one at the same time, or if it was written to.
void check_freed_lately();

// The records of all thread heaps that ever existed, linked by next_record.
const Heap* all_heaps();
// How often this process and its ancestors have forked. Atomic, relaxed: a child writes it before it has a
// second thread.
extern uint32_t forks;
// Is p a bin of some heap, where a list of free blocks ends?
bool is_bin(const void* p);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_HEAP_H
