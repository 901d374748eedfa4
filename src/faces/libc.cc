// libc's malloc family under its own names. One object file, so that a static program takes all of it
// or nothing.
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "faces/family.h"
#include "hummock/hummock.h"
#include "observe/print.h"
#include "observe/stats.h"
#include "os/linux/uncancelled.h"

using namespace hummock;

extern "C" {

// ---- ISO C and POSIX ----------------------------------------------------------------------------

HUMMOCK_EXPORT void* malloc(size_t size) noexcept {
  return heap::allocate(size);
}
HUMMOCK_EXPORT void free(void* block) noexcept {
  heap::release(block);
}
HUMMOCK_EXPORT void* calloc(size_t count, size_t size) noexcept {
  return faces::zeroed_array(count, size);
}
HUMMOCK_EXPORT void* realloc(void* block, size_t size) noexcept {
  return faces::resize(block, size);
}

HUMMOCK_EXPORT void* reallocarray(void* block, size_t count, size_t size) noexcept {
  return faces::resize_array(block, count, size);
}

HUMMOCK_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return faces::c23_aligned(alignment, size);
}

HUMMOCK_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  return faces::posix_aligned(out, alignment, size);
}

HUMMOCK_EXPORT void free_sized(void* block, size_t size) noexcept {
  faces::release_sized(block, size);
}

HUMMOCK_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
  faces::release_aligned_sized(block, alignment, size);
}

// ---- Older names --------------------------------------------------------------------------------

HUMMOCK_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  return faces::rounded_aligned(alignment, size);
}

HUMMOCK_EXPORT void* valloc(size_t size) noexcept {
  return faces::page_aligned(size);
}
HUMMOCK_EXPORT void* pvalloc(size_t size) noexcept {
  return faces::whole_pages(size);
}
HUMMOCK_EXPORT void cfree(void* block) noexcept {
  heap::release(block);
}
HUMMOCK_EXPORT size_t malloc_usable_size(void* block) noexcept {
  return faces::usable_size(block);
}

// glibc exports these beside the plain names. A program that takes a block from one and gives it to
// free() must not meet two allocators. They do not call the plain names, which may be a program's own
// wrappers of these.
#ifdef __GLIBC__
HUMMOCK_EXPORT void* __libc_malloc(size_t size) noexcept {
  return heap::allocate(size);
}
HUMMOCK_EXPORT void __libc_free(void* block) noexcept {
  heap::release(block);
}
HUMMOCK_EXPORT void __libc_cfree(void* block) noexcept {
  heap::release(block);
}
HUMMOCK_EXPORT void* __libc_calloc(size_t count, size_t size) noexcept {
  return faces::zeroed_array(count, size);
}
HUMMOCK_EXPORT void* __libc_realloc(void* block, size_t size) noexcept {
  return faces::resize(block, size);
}
HUMMOCK_EXPORT void* __libc_memalign(size_t alignment, size_t size) noexcept {
  return faces::rounded_aligned(alignment, size);
}
HUMMOCK_EXPORT void* __libc_valloc(size_t size) noexcept {
  return faces::page_aligned(size);
}
HUMMOCK_EXPORT void* __libc_pvalloc(size_t size) noexcept {
  return faces::whole_pages(size);
}
HUMMOCK_EXPORT int __posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  return faces::posix_aligned(out, alignment, size);
}

// ---- Tuning and figures (glibc) -----------------------------------------------------------------

HUMMOCK_EXPORT int malloc_trim(size_t keep) noexcept {
  return heap::trim(keep) ? 1 : 0;
}

HUMMOCK_EXPORT int mallopt(int parameter, int value) noexcept {
  constexpr int kDecayTime = -100;  // Android's M_DECAY_TIME and M_PURGE
  constexpr int kPurge = -101;
  switch (parameter) {
    // Negative means "never give back". Other values say how much may stay free at the end of glibc's
    // heap, which does not exist here: memory that stays free goes back by time.
    case M_TRIM_THRESHOLD:
      if (value < 0) options::set("decay_ms", "never");
      return 1;
    case kDecayTime:
      options::set("decay_ms", value < 0 ? "never" : value == 0 ? "0" : "1000");
      return 1;
    case kPurge:
      heap::trim(0);
      return 1;
    // Sizes and counts of things Hummock has none of: right to accept, nothing to do.
    case M_MXFAST:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

// glibc counts blocks mapped one by one ("hblk") apart from the rest; large blocks stand for them.
// What does not exist here (fast bins, counts of free chunks) is 0.
HUMMOCK_EXPORT struct mallinfo2 mallinfo2() noexcept {
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  observe::collect(&stats);
  const auto minus = [](size_t a, size_t b) { return a > b ? a - b : 0; };
  struct mallinfo2 info = {};
  info.arena = minus(stats.committed + stats.dirty, stats.large_bytes);
  info.hblks = stats.large_blocks;
  info.hblkhd = stats.large_bytes;
  info.uordblks = minus(stats.live, stats.large_bytes);
  info.fordblks = minus(info.arena, info.uordblks);
  info.keepcost = stats.dirty;
  return info;
}

// The old form has int fields; what does not fit is INT_MAX, not a wrapped number.
HUMMOCK_EXPORT struct mallinfo mallinfo() noexcept {
  const struct mallinfo2 wide = mallinfo2();
  const auto fit = [](size_t n) { return n > size_t{INT_MAX} ? INT_MAX : static_cast<int>(n); };
  struct mallinfo info = {};
  info.arena = fit(wide.arena);
  info.hblks = fit(wide.hblks);
  info.hblkhd = fit(wide.hblkhd);
  info.uordblks = fit(wide.uordblks);
  info.fordblks = fit(wide.fordblks);
  info.keepcost = fit(wide.keepcost);
  return info;
}

HUMMOCK_EXPORT void malloc_stats() noexcept {
  observe::print(2);
}

HUMMOCK_EXPORT int malloc_info(int flags, FILE* out) noexcept {
  if (flags != 0 || out == nullptr) return EINVAL;
  const os::Uncancelled uncancelled;
  return observe::print_xml(out);
}
#endif

}  // extern "C"
