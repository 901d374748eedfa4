// First-class heaps: one lock each, their own slabs and large blocks.
//
// They have no magazines: blocks come from the slabs' own lists and go back there, with the lock held. So a
// heap is small, and there may be very many.
#ifndef HUMMOCK_HEAP_USER_H
#define HUMMOCK_HEAP_USER_H

#include "heap/heap.h"

namespace hummock::heap {

// pooled → used → ending → pooled. The thread that brings a heap to ending destroys it. In checked mode it
// stays so until the last of its blocks has left the quarantine.
enum class Life : uint8_t { pooled, used, ending };

// Records are never unmapped, like those of thread heaps. `lock` guards all fields that do not say otherwise.
struct UserHeap {
  os::Lock<os::Rank::heap> lock;
  Life life;      // atomic, relaxed
  bool internal;  // Hummock's own, unknown to the program. Atomic, relaxed
  bool closed;    // ending, and only blocks in quarantine are left: it goes with the last of them
  bool samples;   // internal: of sampled blocks (modes/sampling.h)
  SlabList open[slab::kClasses];  // slabs that may have free blocks; all but the first surely have
  SlabList full;                  // the others, of all classes
  SlabList large;                 // its blocks above 64 KiB
  UserHeap* next_record;          // links all records; written once, before the record is used, as the next
  const UserHeap* self;           // the record: what is no heap's has none here
  UserHeap* next;                 // pool of records, or list of heaps in use. Guarded by the pool's lock.
  UserHeap* prev;
  char name[24];  // given by the program, ended by NUL. Others may read it while it changes.
};
static_assert(sizeof(void*) < 8 || sizeof(UserHeap) <= 1536);

// The lists of free blocks of their slabs end here. Nothing is read or written there.
extern Bin user_bin;

UserHeap* user_create();
void* user_allocate(UserHeap* heap, size_t size);
void* user_allocate_zeroed(UserHeap* heap, size_t size);
void* user_allocate_aligned(UserHeap* heap, size_t align, size_t size);
void* user_reallocate(UserHeap* heap, void* p, size_t size);
void user_release(UserHeap* heap, void* p);
void user_destroy(UserHeap* heap);
void user_stats(UserHeap* heap, hummock_heap_stats_t* out);
void user_name(UserHeap* heap, const char* name);

// Allocates, aligned and zeroed as asked; the common part of the user_… calls and of checked mode.
void* user_take(UserHeap* heap, size_t align, size_t size, bool zero);
// Its counterpart.
void user_give(UserHeap* heap, void* p, const char* call);

// ---- For checked mode -----------------------------------------------------------------------------

// As user_take, but clears nothing: *zeroed says whether all is zero except the block's second word, in which
// `mark` stands. It stands there before anyone else can see that the block is handed out. Null: no memory;
// that is told to nobody yet.
void* user_take_marked(UserHeap* heap, size_t size, uintptr_t mark, bool* zeroed);
// Frees some blocks that only the caller knows, under one lock.
struct OwnBlock {
  SlabHeader* header;
  void* start;
};
void user_take_back(UserHeap* heap, const OwnBlock* blocks, unsigned count);
// The end of a heap some of whose blocks will be taken back: it goes with the last one. Returns the bytes
// that it keeps until then, about.
size_t user_end(UserHeap* heap);

// ---- Records (heap/user_record.cc) ---------------------------------------------------------------

// Takes a record from the pool; null: no memory. One that is not internal counts as the program's.
UserHeap* new_user_heap(bool internal = false);
// The heap at *place, one of Hummock's own: who comes first makes it. `samples`: it is for sampled blocks.
// Null: no memory.
UserHeap* internal_heap(UserHeap** place, bool samples = false);
// From used to ending: the heap is the program's no more. False: it was not in use.
bool end_use(UserHeap* heap);
// Returns a record with nothing left in it to the pool.
void delete_user_heap(UserHeap* heap);
// The records of all first-class heaps that ever existed, linked by next_record.
const UserHeap* all_user_heaps();
// The number of the program's own heaps.
size_t count_user_heaps();

// A fork takes all their locks.
void user_heaps_at_fork(os::ForkStep step);
bool user_heaps_are_locked();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_USER_H
