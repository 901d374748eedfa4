// The header of one 64 KiB slot: what is in the slot, and who may touch it. Headers are never unmapped, so a
// stale read finds one, not a hole.
#ifndef HUMMOCK_PAGES_SLAB_HEADER_H
#define HUMMOCK_PAGES_SLAB_HEADER_H

#include <stddef.h>
#include <stdint.h>

namespace hummock {

namespace heap {
struct Heap;
struct UserHeap;
struct Bin;
}  // namespace heap

inline constexpr size_t kSlotShift = 16;
inline constexpr size_t kSlotSize = size_t{1} << kSlotShift;
inline constexpr size_t kRegionShift = 25;
inline constexpr size_t kRegionSize = size_t{1} << kRegionShift;
inline constexpr unsigned kSlotsPerRegion = kRegionSize / kSlotSize;

inline constexpr size_t kSmallPage = 4096;

enum class Kind : uint8_t {
  free,      // nothing, or the inside of a large block
  slab,      // blocks of one class, owned by a thread heap or shared
  own_slab,  // the same, of a first-class heap: all access under that heap's lock
  interior,  // a later slot of a slab; `back` slots before it is the slab's header
  large,     // one block of whole slots
  huge,      // one block with a mapping of its own
  guarded,   // one block before a page that nobody may touch (modes/guards.h)
  cached,    // a free span that some entry of a span cache leads to (pages/span_cache.h)
};

// Parts of a slab that were purged, a bit for each of 16 (see part_bytes): all blocks in them are free.
// Blocks that begin in such a part are in no list.
struct GonePages {
  uint16_t
      remote;    // parts with blocks that others freed; valid while the remote word says so. Atomic, relaxed.
  uint16_t own;  // parts with the owner's free blocks, which count as not in use
  uint16_t seen;    // what heap/idle.cc saw here last: a hint. Atomic, relaxed.
  uint8_t touched;  // of one slot: small pages from its start that blocks took, now or before
  bool hides;       // those behind may have memory, too
};

struct SlabHeader {
  // ---- The owner's line. Plain fields are the owner's alone; in a shared slab the shard's lock guards them.
  uintptr_t freer;      // os::thread_address() of the thread whose frees here take the fast path; 0: none.
                        // In each slot. Atomic, relaxed: only that thread stores or removes it.
  heap::Bin* bin;       // where the owner's frees go; lists of free blocks end there. In each slot.
  uint64_t free_bound;  // a block's address × its class's multiplier is less than this if, and only if, it is
                        // the start of a carved block. 0: every free looks closely. In each slot. Atomic,
                        // relaxed.
  uintptr_t owner;  // the heap that has the slab; heap + kDirect; kNobody; kShared. In each slot. Atomic,
                    // relaxed: only a heap itself stores or removes its own address. own_slab: kNobody.
  union {
    void* free;             // slab: its own list of free blocks (slab/free_block.h)
    SlabHeader* huge_next;  // huge: list of all. Guarded by the lock of huge_block.cc.
  };
  SlabHeader* next;  // list of the heap, or of the shard
  char* start;       // first byte of the first block
  uint16_t carved;   // blocks carved so far; ≤ capacity
  uint16_t live;  // blocks in use, with those in a bin's lists and those that others freed and nobody drained
  Kind kind;      // atomic for large, huge and guarded blocks and cached spans: who exchanges it owns them
  uint8_t size_class;
  uint8_t back;  // interior: slots back to the slab's header
  bool full;     // owned: it is in the heap's list of full slabs
  // ---- The line of everybody else.
  alignas(64) uint64_t remote;  // the remote word, see slab/remote.h. In the header of a region's first slot:
                                // the region's record. huge: see pages/kept.h
  union {
    SlabHeader* inbox_next;  // belongs to the thread that set the queued flag, until dequeued
    uint64_t rests_since;    // huge: see pages/kept.h
  };
  union {                  // atomic
    heap::Heap* home;      // slab: the heap that last owned it: a hint
    heap::UserHeap* user;  // own_slab, large, huge: its first-class heap; null: none
  };
  size_t bytes;            // of the span; large, huge: the block's usable size
  union {                  // atomic, relaxed
    uint32_t shared_live;  // shared: blocks in use when it was given away
    uint32_t own_tried;    // owned: what heap/own_slabs.cc saw here last: a hint
  };
  union {
    uint32_t notify;  // slab: how many remote frees make it worth a look
    uint32_t entry;   // cached: the number of the entry that it was put into last. Atomic, relaxed: a figure
  };
  uint16_t slots;     // slots of the span
  uint16_t capacity;  // blocks it has room for
  union {
    bool listed;       // shared: it is in its shard's list. Guarded by the shard's lock.
    uint8_t run_kind;  // run: whose list it is in (pages/runs.cc)
  };
  union {
    bool purging;  // slab: its owner purges pages, and takes none back meanwhile
    bool advised;  // huge: transparent huge pages were asked for
  };
  bool fronted;      // huge: an inaccessible slot is before the headers
  bool partial;      // free span: see HugePage. Its next user takes note.
  SlabHeader* prev;  // of `next`
  union {
    SlabHeader* huge_prev;
    GonePages gone;  // slab
  };
};
static_assert(sizeof(SlabHeader) == 128, "512 headers fill one slot");
static_assert(offsetof(SlabHeader, remote) == 64, "owner's and others' fields share no line");

// A sixteenth of a slab: as many small pages as it has slots.
inline size_t part_bytes(const SlabHeader* slab) {
  return slab->slots * kSmallPage;
}

// Values of `owner` that are not a heap.
inline constexpr uintptr_t kNobody = 0;
inline constexpr uintptr_t kShared = 1;
// Added to a heap's address: frees go to the slab's own list, not to the heap's magazine. `freer` is 0.
inline constexpr uintptr_t kDirect = 2;

// A relaxed load, which may race with a store of the same aligned word. Plain without instrumentation,
// because compilers do not fold atomic loads into the instructions that use them.
template <class T>
__attribute__((always_inline)) inline T relaxed(const T& word) {
#if defined(__SANITIZE_THREAD__)
  T value;
  __atomic_load(&word, &value, __ATOMIC_RELAXED);
  return value;
#else
  return word;
#endif
}

// Its counterpart.
template <class T>
inline void set_relaxed(T& word, T value) {
  __atomic_store(&word, &value, __ATOMIC_RELAXED);  // not _n: clang takes no enumeration there
}

// For functions that read what other threads write, as it is. They must follow nothing that they read.
#define HUMMOCK_RACY __attribute__((no_sanitize("thread")))

inline Kind kind_of(const SlabHeader* header) {
  return relaxed(header->kind);
}
// Has a program something there? Not in a cached span either.
inline bool is_in_use(const SlabHeader* header) {
  const Kind kind = kind_of(header);
  return kind != Kind::free && kind != Kind::cached;
}
inline uintptr_t owner_of(const SlabHeader* slab) {
  return relaxed(slab->owner);
}

}  // namespace hummock

#endif  // HUMMOCK_PAGES_SLAB_HEADER_H
