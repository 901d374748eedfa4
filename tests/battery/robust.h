// The families of robustness. A case returns when all went well, and ends the process otherwise.
#ifndef HUMMOCK_TESTS_BATTERY_ROBUST_H
#define HUMMOCK_TESTS_BATTERY_ROBUST_H

#include <errno.h>
#include <string.h>

#include "battery.h"

namespace battery {

extern const Cases argument_cases;
extern const Cases block_cases;
extern const Cases process_cases;
extern const Cases limit_cases;
extern const Cases denial_cases;
extern const Cases thread_cases;
extern const Cases fork_cases;
extern const Cases load_cases;

#define CHECK(condition)                                                                               \
  do {                                                                                                 \
    if (!(condition)) ::battery::end(::battery::kFailed, "%s:%d: %s", __FILE__, __LINE__, #condition); \
  } while (0)

// Memory in use, in bytes: of the process, from /proc; SIZE_MAX where that cannot be read.
size_t resident();

// Whether ceilings on memory apply: not in checked mode, which holds freed memory back.
bool has_ceilings();

// Ends the process unless at most `allowed` more is resident than at `before`.
void check_resident(size_t before, size_t allowed, const char* when);

// A block of `size` with every byte `value`; ends the process when there is none.
char* filled(size_t size, int value);

// Ends the process unless the first `size` bytes of `block` all are `value`.
void check_filled(const void* block, size_t size, int value);

// A round of the whole family of functions with small, middle and large sizes.
void exercise(uint64_t seed, size_t rounds = 200);

// This program again, with the arguments after its name (the last one null). Only returns when it
// cannot.
void run_again(const char* name, const char* argument = nullptr);

// Waits for the child; ends the process unless it ended with kPassed.
void expect_success(int child, const char* what);

}  // namespace battery

#endif  // HUMMOCK_TESTS_BATTERY_ROBUST_H
