// What the malloc family does for sizes of zero, overflow, alignment and errno, written once for the two
// faces that spell its names: hummock_… and libc's.
#ifndef HUMMOCK_FACES_FAMILY_H
#define HUMMOCK_FACES_FAMILY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/allocate.h"
#include "heap/heap.h"
#include "heap/release.h"
#include "os/os.h"

namespace hummock::faces {

inline bool is_power_of_two(size_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

inline void* fail(int error) {
  errno = error;
  return nullptr;
}

// `alignment` is a power of two. No block can be so large that it and its alignment pass PTRDIFF_MAX.
inline void* aligned(size_t alignment, size_t size) {
  if (size > size_t{PTRDIFF_MAX} || alignment > size_t{PTRDIFF_MAX} - size) return fail(ENOMEM);
  return heap::allocate_aligned(alignment, size);
}

inline void* zeroed_array(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
  return heap::allocate_zeroed(bytes);
}

inline void* resize(void* block, size_t size) {
  if (block == nullptr) return heap::allocate(size);
  if (size != 0) return heap::reallocate(block, size);
  heap::release(block);
  return nullptr;
}

inline void* resize_array(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
  return resize(block, bytes);
}

inline void* c23_aligned(size_t alignment, size_t size) {
  if (!is_power_of_two(alignment)) return fail(EINVAL);
  return aligned(alignment, size);
}

inline int posix_aligned(void** out, size_t alignment, size_t size) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* block = aligned(alignment, size);
  // POSIX leaves errno open: programs that look there find what they do with other allocators.
  errno = block == nullptr ? ENOMEM : saved;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

// An alignment that no power of two of the machine's can reach is EINVAL, as with glibc.
inline size_t round_up_to_power(size_t alignment) {
  if (alignment > SIZE_MAX / 2 + 1) return 0;
  size_t power = 1;
  while (power < alignment) power *= 2;
  return power;
}

inline void* rounded_aligned(size_t alignment, size_t size) {
  const size_t power = round_up_to_power(alignment);
  return power == 0 ? fail(EINVAL) : aligned(power, size);
}

inline void* page_aligned(size_t size) {
  return aligned(os::page_size(), size);
}

inline void* whole_pages(size_t size) {
  const size_t page = os::page_size();
  size_t room;
  if (__builtin_add_overflow(size, page - 1, &room)) return fail(ENOMEM);
  return aligned(page, room & ~(page - 1));
}

inline void release_sized(void* block, size_t size) {
  heap::release_sized(block, size);
}

inline void release_aligned_sized(void* block, size_t alignment, size_t size) {
  heap::release_aligned_sized(block, alignment, size);
}

inline size_t usable_size(const void* block) {
  return heap::usable_size(block);
}

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_FAMILY_H
