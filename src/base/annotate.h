// Tells tools that watch each access to memory what may be touched: memcheck, if valgrind's header was there
// when the library was built, and AddressSanitizer, if the library is built with it. For checked mode. Where
// no such tool runs, each call only looks at a word.
#ifndef HUMMOCK_BASE_ANNOTATE_H
#define HUMMOCK_BASE_ANNOTATE_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__linux__) && __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define HUMMOCK_HAS_MEMCHECK 1
#endif

// For functions that read what nobody may touch.
#define HUMMOCK_READS_FORBIDDEN __attribute__((no_sanitize("address")))

namespace hummock::base {

// Does such a tool watch the process?
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool watched = true;
inline void find_watcher() {}
#elif defined(HUMMOCK_HAS_MEMCHECK)
inline bool watched;
// valgrind's other tools do not know the request.
inline void find_watcher() {
  [[maybe_unused]] const char byte = 0;  // on machines that valgrind does not know, its requests are nothing
  watched = VALGRIND_MAKE_MEM_DEFINED(&byte, 1) != 0;
}
#else
inline constexpr bool watched = false;
inline void find_watcher() {}
#endif

// Nobody may touch it.
inline void forbid([[maybe_unused]] const void* p, [[maybe_unused]] size_t size) {
  if (!watched) return;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(p, size);
#elif defined(HUMMOCK_HAS_MEMCHECK)
  static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(p, size));
#endif
}

// Anybody may, and what stands there is known.
inline void permit([[maybe_unused]] const void* p, [[maybe_unused]] size_t size) {
  if (!watched) return;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(p, size);
#elif defined(HUMMOCK_HAS_MEMCHECK)
  static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(p, size));
#endif
}

// The program has a block from now on: what stands there is unknown, if not `zeroed`.
inline void begin_block([[maybe_unused]] const void* p, [[maybe_unused]] size_t size,
                        [[maybe_unused]] bool zeroed) {
#if defined(HUMMOCK_HAS_MEMCHECK)
  if (watched) VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, zeroed);
#endif
}

// It has it no longer: nobody may touch it.
inline void end_block([[maybe_unused]] const void* p, size_t size) {
#if defined(HUMMOCK_HAS_MEMCHECK)
  if (watched) VALGRIND_FREELIKE_BLOCK(p, 0);
  static_cast<void>(size);
#else
  forbid(p, size);
#endif
}

// While it lives, this thread may read what nobody may touch.
class Unwatched {
 public:
#if defined(HUMMOCK_HAS_MEMCHECK)
  Unwatched() {
    if (watched) VALGRIND_DISABLE_ERROR_REPORTING;
  }
  ~Unwatched() {
    if (watched) VALGRIND_ENABLE_ERROR_REPORTING;
  }
#else
  Unwatched() = default;
  ~Unwatched() {}
#endif
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_ANNOTATE_H
