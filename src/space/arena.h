// Memory with promises: address space reserved first, then committed, populated, locked, kept from forks.
#ifndef HUMMOCK_SPACE_ARENA_H
#define HUMMOCK_SPACE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

namespace hummock::space {

// The raw calls, in a table so that tests can make any of them fail; each has its system call's meaning.
struct ArenaCalls {
  void* (*map)(void* hint, size_t size, int protection, int flags, int fd);
  int (*unmap)(void* address, size_t size);
  int (*protect)(void* address, size_t size, int protection);
  int (*advise)(void* address, size_t size, int advice);
  int (*lock)(void* address, size_t size);
  int (*truncate)(int fd, size_t size);
};
extern ArenaCalls arena_calls;

// All below return false (or null) with errno as the system set it.

// Address space without memory, with an unreadable page before and behind, aligned to `align`, a power
// of two of at least a page. `size` is a multiple of pages.
void* arena_reserve(size_t size, size_t align);
// Memory of huge pages from the system's pool of them, guarded in the same way.
void* arena_huge(size_t size);
bool arena_release(void* address, size_t size);

// Readable and writable from now on; the system answers for the memory as its overcommit rule says.
bool arena_commit(void* address, size_t size);
// Contents and memory are gone; the address space stays reserved.
bool arena_decommit(void* address, size_t size);
// The memory goes back, the pages stay usable and read zero.
bool arena_purge(void* address, size_t size);
// Every page has its memory when this returns.
bool arena_populate(void* address, size_t size);
bool arena_lock(void* address, size_t size);
// Asks for huge pages where they lie well.
bool arena_wish_huge(void* address, size_t size);
// A child of fork does not get this memory.
bool arena_keep_from_fork(void* address, size_t size);
// Bytes of the mapping at `address` that stand in huge pages now. Reads /proc.
size_t arena_huge_bytes(const void* address, size_t size);

// Shared memory of `size` bytes: under `name` ("/name", which must not exist yet), or without one when
// it is null. A descriptor, or -1.
int shared_create(const char* name, size_t size);
int shared_open(const char* name);
void shared_close(int descriptor);
bool shared_unlink(const char* name);
// Bytes of it; 0 when the system does not say.
size_t shared_size(int fd);
void* shared_map(int fd, size_t size);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_ARENA_H
