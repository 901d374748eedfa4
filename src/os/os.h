// What the core asks of the operating system: address space, its return, time, and the page size.
#ifndef HUMMOCK_OS_OS_H
#define HUMMOCK_OS_OS_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#include "os/windows_calls.h"
#endif

namespace hummock::os {

#if !defined(_WIN32)
// The raw calls, in a table so that tests can make any of them fail. Each has its system call's
// meaning; a failed map or remap returns MAP_FAILED with errno set.
struct Calls {
  void* (*map)(void* hint, size_t size, int protection, int flags);
  int (*unmap)(void* address, size_t size);
  int (*advise)(void* address, size_t size, int advice);
  void* (*remap)(void* address, size_t old_size, size_t new_size, int flags, void* target);
};
extern Calls calls;
#endif

// Bytes of a page of this kernel, read once at run time.
size_t page_size();

// Zeroed, readable and writable address space; memory comes when it is touched. null when the system
// has none; errno is kept as it was.
void* map(size_t size);

// `before` + size bytes of which the part after `before` is aligned to `align` (a power of two, at least
// a page; `before` a multiple of pages). Returns the aligned address, or null. Prefers to sit directly
// below what is mapped already, so that address space stays dense and no surplus is ever reserved.
void* map_aligned(size_t size, size_t align, size_t before);

// Address space for a region at a multiple of `align`: *size bytes, or fewer but at least `least`, which
// *size then says. Its memory comes with commit(); or, if *pinned is set, it is there already, in large pages
// that the system takes back only as a whole. Null: no room, or (then *size is as it was) none that large.
#if defined(_WIN32)
inline constexpr bool kMustCommit = true;  // memory is promised before it is touched
inline constexpr bool kCanPin = true;
void* map_region(size_t* size, size_t least, size_t align, bool* pinned);
// Makes memory of address space that has none; it reads zero. Where there is some, nothing changes. False
// when the system has none to promise.
bool commit(void* address, size_t size);
#else
inline constexpr bool kMustCommit = false;
inline constexpr bool kCanPin = false;
inline void* map_region(size_t* size, size_t, size_t align, bool*) {
  return map_aligned(*size, align, 0);
}
inline bool commit(void*, size_t) {
  return true;
}
#endif

// Gives address space back. False when the system refused (its map count is exhausted).
bool unmap(void* address, size_t size);

// Gives back all that map() handed out, where the library may be unloaded.
void unmap_maps();

// Gives the memory behind whole pages back and keeps the address space; it reads zero after (where memory
// must be committed: after the next commit). False when refused: contents are then unchanged.
bool purge(void* address, size_t size);

// Changes the size of a mapping where it stands. False when it cannot.
bool resize_in_place(void* address, size_t old_size, size_t new_size);

// Moves the pages of a mapping to `target`, over what is mapped there. False when refused.
bool move_pages(void* address, size_t size, size_t new_size, void* target);

// Milliseconds of a monotonic clock of a few milliseconds' resolution. No system call (vDSO).
uint64_t now_ms();

// Resident bytes of the process, 0 when /proc does not say. Three system calls.
size_t resident_bytes();

// True when the process runs with more rights than its user (AT_SECURE).
bool is_privileged();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_OS_H
