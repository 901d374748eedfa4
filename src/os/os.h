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

// Bits of the addresses that a program may have.
#if defined(__aarch64__)
inline constexpr unsigned kAddressBits = 48;
#elif __SIZEOF_POINTER__ == 8
inline constexpr unsigned kAddressBits = 47;
#else
inline constexpr unsigned kAddressBits = 32;
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

// Where memory is promised before it is touched, address space for a region comes without any, and commit()
// makes some; where there is some already, nothing changes. It reads zero. False: the system has none.
// reserve_where finds a place that `may` agrees to, wherever there is one: not every place will do.
using MayStand = bool (*)(const void* place, size_t size);
void* reserve_where(size_t size, size_t align, MayStand may);
#if defined(_WIN32)
inline constexpr bool kMustCommit = true;
bool commit(void* address, size_t size);
#else
inline constexpr bool kMustCommit = false;
inline bool commit(void*, size_t) {
  return true;
}
#endif

// Memory that other processes of the same user can open by its name in /proc/<process>/fd. Its descriptor is
// out of the way of the program's own, stays open, and is closed in programs it executes. It reads zero;
// children of a fork share it. Null: none to be had.
void* map_shared(const char* name, size_t size);

// Gives address space back. False when the system refused (its map count is exhausted).
bool unmap(void* address, size_t size);

// Takes the memory and all access from pages. False when refused.
bool deny(void* address, size_t size);
// Gives access back to pages that map() handed out and deny() took; they read zero. False: no memory.
bool allow(void* address, size_t size);

// Gives address space a name, which /proc/<process>/smaps shows. False: the system knows no names.
bool name_mapping(void* address, size_t size, const char* name);

// Gives back all that map() handed out, where the library may be unloaded.
void unmap_maps();

// Gives the memory behind whole pages back and keeps the address space; it reads zero after (where memory
// must be committed: after the next commit). False when refused: contents are then unchanged.
bool purge(void* address, size_t size);

// Changes the size of a mapping where it stands. False when it cannot.
bool resize_in_place(void* address, size_t old_size, size_t new_size);

// Moves the pages of a mapping to `target`, over what is mapped there. False when refused.
bool move_pages(void* address, size_t size, size_t new_size, void* target);

// The same, but the address space they leave stays mapped, without memory. False, too, where a kernel cannot
// (Linux before 5.7).
bool lift_pages(void* address, size_t size, void* target);

// Does a page that is read before anybody has written it cost a second fault when it is written, and can one
// instruction write without a change? write_unchanged() is that one.
#if defined(__linux__) && (defined(__x86_64__) || defined(__i386__))
inline constexpr bool kSharesZeros = true;
inline void write_unchanged(char* byte) {
  asm volatile("orb $0, %0" : "+m"(*byte));
}
#else
inline constexpr bool kSharesZeros = false;
inline void write_unchanged(char*) {}
#endif

// Fetches the cache line of an address that will be read and then written: else another processor that has it
// is asked twice. Any address does.
inline void fetch_for_write(const void* p) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(p));
#else
  __builtin_prefetch(p, 1);
#endif
}

// Milliseconds of a monotonic clock of a few milliseconds' resolution. No system call (vDSO).
uint64_t now_ms();

// Nanoseconds of a monotonic clock, for durations. No system call (vDSO).
uint64_t now_ns();

// Resident bytes of the process, 0 when /proc does not say. Three system calls.
size_t resident_bytes();

// A number that nobody outside the process can know.
uint64_t random_word();

// Lets another thread run, if one waits.
void yield();

// True when the process runs with more rights than its user (AT_SECURE).
bool is_privileged();

// The name of an error number, "ENOMEM"; "an unknown error" for one that this layer never meets.
const char* error_name(int error);

// ---- Huge pages ----------------------------------------------------------------------------------
// Errors are error numbers, 0 for none. All may be slow: never call them with a lock held.

inline constexpr size_t kHugePage = size_t{2} << 20;
inline constexpr size_t kGiantPage = size_t{1} << 30;

// Does the system give huge pages to who asks, one by one, where memory is touched? Else it has only those
// set aside, or given to who has the right to them: large_pages_granted().
#if defined(_WIN32)
inline constexpr bool kHasTransparent = false;
bool large_pages_granted();
#else
inline constexpr bool kHasTransparent = true;
inline bool large_pages_granted() {
  return false;
}
#endif

// `size` bytes at a multiple of `align` on pages of `page` bytes that the system has set aside (size and
// align are multiples of it), at a place that `may` agrees to, all of them present: touching them cannot fail
// later. They read zero. Null and *error when it has not enough of them; nothing is mapped then.
void* map_set_aside(size_t size, size_t align, size_t page, MayStand may, int* error);

// Asks for huge pages where `address` … + size is touched from now on, or for small ones.
int advise_huge(void* address, size_t size, bool wanted);

// May advise_huge do anything for this process? If not, *why says what stands against it.
bool transparent_allowed(const char** why);

// Moves what stands in whole huge pages' room onto huge pages. Contents stay, other threads may write.
int collapse(void* address, size_t size);

// Bit 0 of page[i]: the i-th page of the range has memory. False: the system does not say.
bool find_touched(void* address, size_t size, unsigned char* page);

// Brings in all memory of the range, which keeps its contents.
int populate(void* address, size_t size);

// Small pages that read zero in place of what is mapped there, whose pages go back to the system. False when
// refused: nothing has changed.
bool replace_by_small(void* address, size_t size);

// Memory that can be had without taking it from somebody, the limits of the process's group included; 0 when
// the system does not say.
size_t available_bytes();

// Most memory that the process's control group may have, and what that stands in, down from the machine's.
// The first call makes many system calls, later ones look at one file again: three. One thread at a time.
size_t group_limit();

// ---- What the region log needs -------------------------------------------------------------------

unsigned process_id();

// The name of its program, ended by NUL; empty when the system does not say.
void program_name(char* out, size_t room);

// A new descriptor that appends to the file, which is made if need be, out of the way of the program's
// own descriptors and closed in programs it executes; -1 and *error. On Windows it is in the folder for
// temporary files where `path` cannot be opened, and *error says why.
int open_append(const char* path, int* error);

// `path` made absolute in `room` bytes; false when it does not fit or the folder is unknown.
bool absolute_path(const char* path, char* out, size_t room);

// Tells an open file from any other that may later have the same descriptor; 0: it is closed.
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
