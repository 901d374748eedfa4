// Checks of pointers, and the messages that end the process when a pointer is not a live block of ours.
#ifndef HUMMOCK_HEAP_DIAGNOSE_H
#define HUMMOCK_HEAP_DIAGNOSE_H

#include "heap/heap.h"

namespace hummock::heap {

// `call` was given p, which is not the start of a live block. Reports what is there instead, to the program's
// handler if there is one. A caller that holds a lock or has changed something passes base::die.
[[noreturn]] void bad_pointer(const char* call, const void* p, slab::End end = base::refuse);

// Adds where p is: "points 16 bytes into a block of 64 bytes at 0x...", or before it.
void say_inside(base::Line& line, const pages::Extent& block, const void* p);

// `call` was given a block of another heap than the one it names: says so, or what else is wrong with it.
[[noreturn]] void other_heap(const char* call, const SlabHeader* header, const void* p);

// `call` was given a first-class heap that was destroyed, or what never was one. The same.
[[noreturn]] void no_such_heap(const char* call, const UserHeap* heap, slab::End end = base::refuse);

// Aborts with a message unless p is the start of a live block of the slab. A block that another thread frees
// at this very moment may still seem live.
void check_live(const char* call, const SlabHeader* slab, const void* p, slab::End end = base::refuse);
// Was the block freed, and not handed out since? `waits`: another thread may have marked it a moment ago.
bool was_freed(const SlabHeader* slab, void* block, bool waits);

// The next block of a bin is not what it should be.
[[noreturn]] void bad_bin(const void* block, unsigned size_class);

// Aborts unless a request of the claimed size can have returned the block: it is no more than the usable
// size, and not so small that a smaller class would have served, unless some_stayed. `align`: the claimed
// alignment, or 0.
void check_claim(const char* call, const void* p, size_t room, size_t claimed, size_t align);

// Is this the link of a block in some heap's remote cache (heap/remote.cc)?
bool is_waiting(uintptr_t link);

// Where the link of a free block can lead: to another block of the class, or to the list's end.
bool leads_on(const SlabHeader* slab, uintptr_t link);

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_DIAGNOSE_H
