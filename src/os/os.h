// What the core asks of the operating system: address space, its return, time, and the page size.
#ifndef HUMMOCK_OS_OS_H
#define HUMMOCK_OS_OS_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::os {

// The raw calls, in a table so that tests can make any of them fail. Each has its system call's
// meaning; a failed map or remap returns MAP_FAILED with errno set.
struct Calls {
  void* (*map)(void* hint, size_t size, int protection, int flags);
  int (*unmap)(void* address, size_t size);
  int (*advise)(void* address, size_t size, int advice);
  void* (*remap)(void* address, size_t old_size, size_t new_size, int flags, void* target);
};
extern Calls calls;

// Bytes of a page of this kernel, read once at run time.
size_t page_size();

// Zeroed, readable and writable address space; memory comes when it is touched. null when the system
// has none; errno is kept as it was.
void* map(size_t size);

// `before` + size bytes of which the part after `before` is aligned to `align` (a power of two, at least
// a page; `before` a multiple of pages). Returns the aligned address, or null. Prefers to sit directly
// below what is mapped already, so that address space stays dense and no surplus is ever reserved.
void* map_aligned(size_t size, size_t align, size_t before);

// Gives address space back. False when the system refused (its map count is exhausted).
bool unmap(void* address, size_t size);

// Gives the memory behind whole pages back and keeps the address space; it reads zero after. False when
// refused: contents are then unchanged.
bool purge(void* address, size_t size);

// Changes the size of a mapping where it stands. False when it cannot.
bool resize_in_place(void* address, size_t old_size, size_t new_size);

// Moves the pages of a mapping to `target`, over what is mapped there. False when refused.
bool move_pages(void* address, size_t size, size_t new_size, void* target);

// Milliseconds of a monotonic clock of a few milliseconds' resolution. No system call (vDSO).
uint64_t now_ms();

// Nanoseconds of a monotonic clock, for durations. No system call (vDSO).
uint64_t now_ns();

// Resident bytes of the process, 0 when /proc does not say. Three system calls.
size_t resident_bytes();

// True when the process runs with more rights than its user (AT_SECURE).
bool is_privileged();

// The name of an error number, "ENOMEM"; "an unknown error" for one that this layer never meets.
const char* error_name(int error);

// ---- What the region log needs -------------------------------------------------------------------

unsigned process_id();

// A new descriptor that appends to the file, which is made if need be, out of the way of the program's
// own descriptors and closed in programs it executes; -1 and *error.
int open_append(const char* path, int* error);

// `path` made absolute in `room` bytes; false when it does not fit or the folder is unknown.
bool absolute_path(const char* path, char* out, size_t room);

// What tells an open file from any other that may later have the same descriptor; 0: it is closed.
uint64_t file_identity(int fd);

// "20261121-081502" (UTC) with its NUL into `out`, which has 16 bytes.
void write_time(char* out);

// The machine and the process as they are now, one "name: value" line at a time to `fd`: system, kernel,
// CPU, memory, commit limits, processes, uptime, rights, huge pages, limits. No memory is allocated.
void describe_machine(int fd);

// Bytes of the process that stand on huge pages now, of both kinds: a slow look at its whole map.
struct HugeBytes {
  size_t transparent, reserved;
};
HugeBytes huge_bytes_in_use();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_OS_H
