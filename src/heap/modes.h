// What the heap asks of the layer above it, src/modes: modes that see every call, sampled blocks, and guarded
// ones. Nowhere else does the heap call upwards.
#ifndef HUMMOCK_HEAP_MODES_H
#define HUMMOCK_HEAP_MODES_H

#include "heap/block.h"
#include "heap/walk.h"
#include "hummock/profile.h"

namespace hummock::modes {

using heap::Heap;
using heap::UserHeap;

// ---- Start, the end of a thread, fork -------------------------------------------------------------

// The options have been read, and no other thread goes on before this returns. True: no mode needs to see
// every call.
bool start();
// The same, but other threads run. May be called again.
void start_samples();
void end_thread(Heap* heap);

// Around a fork: the locks that come above those of first-class heaps. The child is alone.
void lock_for_fork();
void unlock_after_fork();
void unlock_in_child();
bool is_locked();
void begin_in_child();

// ---- While sees_every_call() ----------------------------------------------------------------------

// `align` 0: the usual one. Null + ENOMEM: memory is short.
void* allocate(size_t align, size_t size, bool zero);
void* allocate_plain(size_t size);
void* reallocate(void* p, size_t size, bool zero);
size_t usable_size(const void* p);        // p is not null
void release(void* p, SlabHeader* slot);  // as heap::release_slow
// p is not null. `align` 0: none was claimed.
void release_sized(const char* call, void* p, size_t align, size_t size);

// The call under way is operator new or delete, not what it seems further down.
void note_new();
void note_delete();

// The same for first-class heaps.
void* allocate_in(UserHeap* heap, size_t align, size_t size, bool zero);
void release_in(UserHeap* heap, void* p);
// Only where heap::is_checked(). The second is for a heap that ends; false: it must stay.
void* reallocate_in(UserHeap* heap, void* p, size_t size);
bool forget(UserHeap* heap);

// Is p in memory that the heap knows nothing of? In any mode.
bool owns(const void* p);

// ---- Samples --------------------------------------------------------------------------------------

// Bytes from one sampled or guarded block to the next, on average. 0: there are none.
uint64_t sample_mean();
// The thread's count ran out. True: the block is to be sampled.
bool is_sample_due(size_t size);
// At most kMaxSmall bytes. Null: the block is to be one like any other.
void* allocate_sampled(size_t align, size_t size, bool zero);
void mark_sampled(void* large_block, size_t size);
// A live block of a heap of samples is freed. True: it is large, and gone now.
bool release_sampled(const heap::Block& block, void* p);

// Around the resizing of a large block, whose sample is out of sight meanwhile.
struct Resampling {
  bool had;
  hummock_profile_sample_t sample;
};
Resampling begin_resize(const heap::Block& block);
// `resized` null: the block did not change.
void end_resize(const Resampling& before, const heap::Block& block, void* resized, size_t size);

// ---- Guarded blocks -------------------------------------------------------------------------------

void release_guarded(const char* call, SlabHeader* header, void* p);
// p is not a live block. If it is near a guarded one, tells that and ends the process.
void tell_misuse(const char* call, const void* p, slab::End end);
// False: the visitor stopped.
bool walk_guarded(const heap::Visitor& visitor);

}  // namespace hummock::modes

#endif  // HUMMOCK_HEAP_MODES_H
