// What the two surface programs share. They know nothing of Hummock, so that they run on any malloc; glibc
// alone must pass but for the marked lines. One line is printed a failure.
#ifndef HUMMOCK_TESTS_SURFACE_H
#define HUMMOCK_TESTS_SURFACE_H

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" __attribute__((weak)) int hummock_is_active(void);

inline int failures = 0;
inline bool ours = false;

#define CHECK(condition) check((condition), __FILE__, __LINE__, #condition)
#define CHECK_AT(condition, n) check((condition), __FILE__, __LINE__, #condition, (n))
#define FAILS(call, error) (errno = 0, (call) == nullptr && errno == (error))

// Not inlined: the compiler would follow SIZE_MAX, which stands for no n, to where n is used, and warn.
__attribute__((noinline)) inline void check(bool holds, const char* file, int line, const char* text,
                                            size_t n = SIZE_MAX) {
  if (holds) return;
  ++failures;
  if (n == SIZE_MAX) fprintf(stderr, "%s:%d: %s\n", file, line, text);
  if (n != SIZE_MAX) fprintf(stderr, "%s:%d: %s (with %zu)\n", file, line, text, n);
}

// Hides a value from the compiler, which would warn of impossible sizes and drop unused calls.
template <class T>
T hidden(T value) {
  __asm__ volatile("" : "+r"(value) : : "memory");
  return value;
}

inline bool is_aligned(const void* block, size_t alignment) {
  return (reinterpret_cast<uintptr_t>(block) & (alignment - 1)) == 0;
}

inline bool holds(const void* block, int byte, size_t n) {
  const unsigned char* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] != static_cast<unsigned char>(byte)) return false;
  }
  return true;
}

inline const size_t kSizes[] = {0,     1,     7,     8,      15,      16,      17,      64,      100,
                                256,   257,   1000,  1024,   1025,    4096,    5000,    8192,    8193,
                                20000, 65536, 65537, 262144, 1000000, 2097152, 5000000, 20000000};
inline const size_t kTooLarge[] = {SIZE_MAX,
                                   SIZE_MAX - 1,
                                   SIZE_MAX - 15,
                                   SIZE_MAX - 4096,
                                   SIZE_MAX / 2 + 1,
                                   static_cast<size_t>(PTRDIFF_MAX),
                                   static_cast<size_t>(PTRDIFF_MAX) - (sizeof(size_t) == 8 ? 65536 : 0)};

// Finds out whose malloc this is. A preloaded library that does not take over is a failure.
inline void begin() {
  ours = hummock_is_active != nullptr && hummock_is_active() == 1;
  printf("malloc is %s\n", ours ? "hummock's" : "another");
  const char* preloaded = getenv("LD_PRELOAD");
  if (preloaded != nullptr && strstr(preloaded, "libhummock") != nullptr) CHECK(ours);
}

inline int end() {
  if (failures != 0) fprintf(stderr, "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

#endif  // HUMMOCK_TESTS_SURFACE_H
