// The calls that the chaos program makes: the process's own malloc, or, with CHAOS_PREFIXED, those of the
// prefixed library, whose system calls can be refused.
#ifndef HUMMOCK_TESTS_CHAOS_CALLS_H
#define HUMMOCK_TESTS_CHAOS_CALLS_H

#include <hummock/hummock.h>
#include <malloc.h>
#include <stdlib.h>

#include <new>

namespace calls {

#ifdef CHAOS_PREFIXED
inline constexpr bool kPrefixed = true;
#define CHAOS_CALL(name) hummock_##name
#else
inline constexpr bool kPrefixed = false;
#define CHAOS_CALL(name) name
#endif

inline void* get(size_t size) {
  return CHAOS_CALL(malloc)(size);
}
inline void* get_zero(size_t count, size_t size) {
  return CHAOS_CALL(calloc)(count, size);
}
inline void* resize(void* block, size_t size) {
  return CHAOS_CALL(realloc)(block, size);
}
inline void* resize_array(void* block, size_t n, size_t size) {
  return CHAOS_CALL(reallocarray)(block, n, size);
}
inline void* get_aligned(size_t alignment, size_t size) {
  return CHAOS_CALL(memalign)(alignment, size);
}
inline void* get_aligned_c(size_t alignment, size_t size) {
  return CHAOS_CALL(aligned_alloc)(alignment, size);
}
inline int get_posix(void** out, size_t alignment, size_t size) {
  return CHAOS_CALL(posix_memalign)(out, alignment, size);
}
inline void* get_pages(size_t size) {
  return CHAOS_CALL(valloc)(size);
}
inline void give(void* block) {
  CHAOS_CALL(free)(block);
}
#undef CHAOS_CALL

#ifdef CHAOS_PREFIXED
inline size_t usable(void* block) {
  return hummock_usable_size(block);
}
inline void* get_new(size_t size) {
  return hummock_malloc(size);
}
inline void give_new(void* block, size_t size) {
  hummock_free_sized(block, size);
}
inline void* get_new_aligned(size_t size, size_t alignment) {
  return hummock_aligned_alloc(alignment, size);
}
inline void give_new_aligned(void* block, size_t size, size_t alignment) {
  hummock_free_aligned_sized(block, alignment, size);
}
inline void trim(size_t keep) {
  hummock_trim(keep);
}
inline void figures(size_t) {}
#else
inline size_t usable(void* block) {
  return malloc_usable_size(block);
}
inline void* get_new(size_t size) {
  return operator new(size, std::nothrow);
}
inline void give_new(void* block, size_t size) {
  operator delete(block, size);
}
inline void* get_new_aligned(size_t size, size_t alignment) {
  return operator new (size, std::align_val_t{alignment}, std::nothrow);
}
inline void give_new_aligned(void* block, size_t size, size_t alignment) {
  operator delete (block, size, std::align_val_t{alignment});
}
inline void trim(size_t keep) {
  malloc_trim(keep);
}
inline void figures(size_t which) {
  if (which == 0) (void)mallinfo2();
  if (which != 1) return;
  FILE* nowhere = fopen("/dev/null", "w");
  if (nowhere == nullptr) return;
  malloc_info(0, nowhere);
  fclose(nowhere);
}
#endif

}  // namespace calls

#endif  // HUMMOCK_TESTS_CHAOS_CALLS_H
