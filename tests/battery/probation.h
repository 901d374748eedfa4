// After a misuse: does the allocator still hand out sound memory?
#ifndef HUMMOCK_TESTS_BATTERY_PROBATION_H
#define HUMMOCK_TESTS_BATTERY_PROBATION_H

#include "battery.h"

namespace battery {

// The memory at `from` is in use until the end: filled with a pattern now, checked through the
// probation. A block is freed at its end; other memory (`borrow`) only has to stay as it is.
void keep(void* block, size_t size);
void borrow(void* from, size_t size);
// A block in use whose contents are not looked at: a wrong free of a part of it may change them.
void keep_unchecked(void* block, size_t size);
// The same of memory that cannot be written.
void borrow_unwritten(const void* from, size_t size);

// Fills everything kept once more, after the program itself has damaged it.
void refill();

// A block among live ones of the same size, which are kept: `before` and `after` it.
void* in_crowd(size_t size, size_t before = 16, size_t after = 16);

// Four blocks of 64 bytes freed and one of them handed out again; returns another one, which is still free.
void* still_free();

// What blocks are filled with from here on: patterns, or (quiet) zeros. Zeros do not disturb the links
// of a block that is handed out while it stands in a list of free ones, so nothing else reports it.
void fill_with_zeros();

// Goes on allocating and freeing in one thread and in two, blocks of `size` and others, and ends the
// process with kCorrupt when live blocks overlap, a live block's contents change, or calloc gives
// memory that is not zero.
void probation(size_t size);

}  // namespace battery

#endif  // HUMMOCK_TESTS_BATTERY_PROBATION_H
