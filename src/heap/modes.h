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

// ---- Start and fork -------------------------------------------------------------------------------

// The options have been read, and no other thread goes on before this returns. True: no mode needs to see
// every call.
bool start();

// Around a fork: the locks that come above those of first-class heaps. The child is alone.
void at_fork(os::ForkStep step);
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

// For operator new and delete, which call allocate and release.
void* allocate_new(size_t size);
void note_delete(void* p);  // p is not null; it is freed next

// The same for first-class heaps.
void* allocate_in(UserHeap* heap, size_t align, size_t size, bool zero);
void release_in(UserHeap* heap, void* p);

}  // namespace hummock::modes

// ---- Of single modes, in any mode unless said ------------------------------------------------------

namespace hummock::modes::checked {

// Only in checked mode. `heap`: the one that the call names; null: none.
void* reallocate(UserHeap* heap, void* p, size_t size, bool zero);
// As hummock_heap_destroy: frees all blocks of the heap, which goes when they have left the quarantine.
void destroy(UserHeap* heap);
// `call` was given a heap that was destroyed: a report, and the end.
[[noreturn]] void say_no_heap(const char* call, const UserHeap* heap);

}  // namespace hummock::modes::checked

namespace hummock::modes::served {

// Does the address lie in the space that serves malloc? False without one.
bool owns(const void* p);

}  // namespace hummock::modes::served

namespace hummock::modes::recording {

// The thread's ring is given up.
void end_thread(Heap* heap);

}  // namespace hummock::modes::recording

namespace hummock::modes::sampling {

// Bytes from one sample, or guarded block, to the next, on average; 0: off. 1: every block is sampled.
uint64_t mean();
// The option `guards` has changed, or was read. Guarded blocks are sampled ones, with or without a profile;
// while there is a profile, its mean holds for both.
void renew_guards();

// The thread's count ran out: draws a new one. True: the block is to be sampled; the thread has a heap then.
bool is_due(size_t size);
// Allocates a block with a guard, a sample, or both; null: neither is possible. At most kMaxSmall bytes.
void* allocate_small(size_t align, size_t size, bool zero);
// Makes a sample for a large block.
void mark_large(void* block, size_t size);
// A live block of the heap of samples is freed: ends its sample. True: the block was large, and is freed.
bool release(const heap::Block& block, void* p);

// A sample is taken out of the table while its large block is resized. The resized block counts as a new one.
struct Rest {
  bool had;
  hummock_profile_sample_t sample;
};
Rest begin_resize(const heap::Block& block);
// `resized` null: the block did not change.
void end_resize(const Rest& rest, const heap::Block& block, void* resized, size_t size);

}  // namespace hummock::modes::sampling

namespace hummock::modes::guards {

// Frees the guarded block p; the header is its slot's. Aborts with a report if p is not a block, was freed
// before, or if the bytes around it were written.
void release(const char* call, SlabHeader* header, void* p);

// p is not a live block. If it points near a guarded one, live or freed, reports that and ends the process.
// Else returns.
void tell_misuse(const char* call, const void* p, slab::End end);

// Visits each live one, until the visitor stops: then false.
bool walk(const heap::Visitor& visitor);

}  // namespace hummock::modes::guards

#endif  // HUMMOCK_HEAP_MODES_H
