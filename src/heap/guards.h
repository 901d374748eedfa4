// Guarded blocks: a sampled block may stand alone at the end of its pages, before pages that nobody may
// touch. Who writes behind it faults at once; freed, nobody may touch it at all, until its place is needed
// again, the longest free first. So a few of a program's faults are told where they happen, with the stacks
// of who allocated and who freed the block, at next to no cost.
//
// The places are slots of regions of their own, which the region map knows; each slot's header says what
// stands there. A header's kind goes free → guarded by who took the slot, and back by who frees the block;
// who comes second finds it free.
#ifndef HUMMOCK_HEAP_GUARDS_H
#define HUMMOCK_HEAP_GUARDS_H

#include "heap/heap.h"
#include "heap/walk.h"

namespace hummock::heap::guards {

// Takes over the option `guards`: at start, and after it may have changed. Any thread.
void renew();
// Bytes from one guarded block to the next, on average; 0: off, or this system tells of no faults.
uint64_t mean();

// Reads zero. Null: guards are off, a slot has no room for it and a page (60 KiB most often), all slots have
// blocks, or the system has no mapping left. A system call here, and another in release().
void* allocate(size_t align, size_t size);

// The call frees the block p of a slot with this header; aborts with a report when it is none, was freed
// before, or the bytes around it were written.
void release(const char* call, SlabHeader* header, void* p);

// p is no live block: if it points near a guarded one, live or freed, the report names it, and the process
// ends. Else returns.
void tell_misuse(const char* call, const void* p, slab::End end);

// Tells each live one, until the visitor has had enough: false.
bool walk(const Visitor& visitor);

void lock_for_fork();
void unlock_after_fork();
void unlock_in_child();
bool is_locked();

}  // namespace hummock::heap::guards

#endif  // HUMMOCK_HEAP_GUARDS_H
