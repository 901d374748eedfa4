// Guarded blocks: a sampled block may be alone at the end of its pages, in front of pages that nobody may
// touch. A write behind it faults at once. After the free nobody may touch the block at all, until its slot
// is used again, the one that was free longest first. So some of a program's memory errors are reported where
// they happen, with the stacks of allocation and free, at next to no cost.
//
// The blocks are in slots of separate regions, which the region map knows; each slot's header says what is in
// it. A header's kind goes from free to guarded by the thread that takes the slot, and back by the thread
// that frees the block. A thread that frees it a second time finds it free.
#ifndef HUMMOCK_MODES_GUARDS_H
#define HUMMOCK_MODES_GUARDS_H

#include "heap/modes.h"

namespace hummock::modes::guards {

// Reads the option `guards`: at start, and after it may have changed. Any thread.
void renew();
// Bytes from one guarded block to the next, on average; 0: off, or this system does not report faults.
uint64_t mean();

// Allocates a guarded block, which reads as zeros. Null: guards are off, the block is too large for a slot
// with a page (60 KiB mostly), all slots are taken, or the process has no mapping left. It makes a system
// call, and so does release().
void* allocate(size_t align, size_t size);

void at_fork(os::ForkStep step);
bool is_locked();

}  // namespace hummock::modes::guards

#endif  // HUMMOCK_MODES_GUARDS_H
