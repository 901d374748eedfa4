// Memory for the program's own books, straight from the system: what is measured is the allocator alone.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Zeroed, resident at once, never given back. Ends the program when there is none.
void* arena_take(size_t bytes);

template <class T>
T* arena_array(size_t count) {
  return static_cast<T*>(arena_take(count * sizeof(T)));
}

// Bytes taken so far.
size_t arena_used();

// One line on standard error, then exit with `status` (2: bad arguments, 3: a broken block or no memory).
[[noreturn]] void fail(int status, const char* format, ...) __attribute__((format(printf, 2, 3)));
