// A heap: a thread's, or a first-class one. And the calls that the faces make.
#ifndef HUMMOCK_HEAP_HEAP_H
#define HUMMOCK_HEAP_HEAP_H

#include "base/list.h"
#include "hummock/hummock.h"
#include "os/lock.h"
#include "slab/slab.h"

namespace hummock::heap {

using SlabList = base::List<SlabHeader, &SlabHeader::next, &SlabHeader::prev>;

// Blocks of one slab that this thread freed and has not yet handed over.
struct RemoteEntry {
  SlabHeader* slab;
  void* first;
  void* last;
  uint32_t count;
};
inline constexpr unsigned kRemoteEntries = 16;

// Invariant: a bin holds only blocks of the class's current slab, and they count there as in use.
// Records are never unmapped: a stale pointer to one is a hint, not a danger.
struct Heap {
  void* bins[slab::kClasses];  // by class; bins[0] stays empty: size 0 takes the slow path
  bool attached;               // a thread's; not a sentinel
  bool user;                   // first-class: all below and above is guarded by `lock`
  bool remote_used;            // some remote entry holds blocks
  SlabHeader* current[slab::kClasses];
  SlabList partial[slab::kClasses];  // owned slabs with free blocks that are not current
  uint8_t refills;                   // modulo 256: see allocate_slow
  uint8_t spare_class;               // whose current slab was the last of several slots to become empty
  SlabList full;                     // owned slabs without, all classes
  RemoteEntry remote[kRemoteEntries];
  os::Lock lock;
  SlabList large;  // first-class: its blocks above 64 KiB
  size_t large_bytes;
  Heap* next;  // pool of records, or list of first-class heaps. Guarded by the pool's lock.
  Heap* prev;
  // Slabs with enough remote frees, pushed by others; kSealed when no thread is here to look. Atomic.
  alignas(64) SlabHeader* inbox;
};

inline SlabHeader* const kSealed = reinterpret_cast<SlabHeader*>(1);

// The calling thread's heap. A thread without one points to a sentinel whose bins are all empty, so the
// fast path needs no check. Initial-exec TLS: one load, and no trouble with dlopen at this size.
extern __thread Heap* thread_heap __attribute__((tls_model("initial-exec")));
extern Heap empty_heap;  // before a thread's first block
extern Heap ended_heap;  // after its end

// ---- What the faces call; semantics in hummock.h. `p` is not null unless said. -------------------

void* allocate(size_t size);                        // in heap/allocate.h
void release(void* p);                              // in heap/release.h; null does nothing
void* allocate_zeroed(size_t size);                 // the whole usable size
void* allocate_aligned(size_t align, size_t size);  // align: any power of two
void* reallocate(void* p, size_t size);             // size ≠ 0
void* reallocate_zeroed(void* p, size_t size);
size_t usable_size(const void* p);
size_t good_size(size_t size);
void release_sized(void* p, size_t size);
void release_aligned_sized(void* p, size_t align, size_t size);
bool trim(size_t keep);
bool owns(const void* p);

Heap* user_create();
void* user_allocate(Heap* heap, size_t size);
void* user_allocate_zeroed(Heap* heap, size_t size);
void* user_allocate_aligned(Heap* heap, size_t align, size_t size);
void* user_reallocate(Heap* heap, void* p, size_t size);
void user_release(Heap* heap, void* p);
void user_destroy(Heap* heap);
void user_stats(Heap* heap, hummock_heap_stats_t* out);

// Blocks that rest in the calling thread's bins, a number for each class.
void count_resting(uint32_t* per_class);

// Numbers of thread heaps in use and of first-class heaps.
void count_heaps(size_t* threads, size_t* user);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_HEAP_H
