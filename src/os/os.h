// What the core asks of the operating system: address space, memory, time, and the page size.
#ifndef HUMMOCK_OS_OS_H
#define HUMMOCK_OS_OS_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#include "os/windows/calls.h"
#else
#include <time.h>
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

// Where all times come from: as clock_gettime. Tests set another.
using Clock = int (*)(clockid_t which, timespec* now);
extern Clock read_clock;  // atomic, relaxed
uint64_t seconds_since_1970();
#endif

// How many bits a program's addresses have.
#if defined(__aarch64__)
inline constexpr unsigned kAddressBits = 48;
#elif __SIZEOF_POINTER__ == 8
inline constexpr unsigned kAddressBits = 47;
#else
inline constexpr unsigned kAddressBits = 32;
#endif

// Bytes of a page of this kernel, read once at run time.
size_t page_size();

// Maps zeroed, readable and writable address space; memory comes when it is touched. Null: refused; errno
// does not change.
void* map(size_t size);

// Maps `before` + size bytes; the part after `before` is aligned to `align` (a power of two, at least a page;
// `before` is a multiple of pages). Returns the aligned address, or null. Prefers the place directly below
// what is already mapped, so that address space stays dense and no surplus is reserved.
void* map_aligned(size_t size, size_t align, size_t before);

// The same, with much free address space behind it, so that it can grow in place. Null: not possible there.
void* map_apart(size_t size, size_t align, size_t before);

// reserve_where maps address space for a region at a place that `may` agrees to, wherever there is one. On
// systems that promise memory before it is touched, the address space comes without memory, and commit() adds
// memory, which reads as zeros; memory that is there does not change. False: the system has none.
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
// out of the way of the program's own, stays open, and is closed on exec. It reads as zeros; children of a
// fork share it. Null: not possible.
void* map_shared(const char* name, size_t size);
// The same in steps of at most four system calls each. One thread at a time.
struct SharedInSteps {
  unsigned step;  // to be made next
  unsigned process;
  int fd;
  uint64_t identity;
  void* memory;  // in the end
};
bool map_shared_some(SharedInSteps* so_far, const char* name, size_t size);  // true: that was all
// In a child of fork: closes what the parent had begun.
void forget_shared(SharedInSteps* so_far);

// A part of memory that another process shares with this one and those it starts, as a descriptor: the parts
// stand one after the other, each of `size` bytes, and each goes to who first claims it by writing its number
// over the zero that `claim` bytes after its start, in its first page. The variable is "NAME=" as in the
// environment; its value is <descriptor>:<inode>. Null: there is none, or no part is left.
void* claim_shared(const char* variable, size_t size, size_t claim);
// Is there such memory, whether or not parts of it are left?
bool shares_memory(const char* variable);

// Maps address space again where some was unmapped; it reads as zeros.
enum class Filled : uint8_t { yes, taken, refused };  // taken: something is there
Filled map_if_free(void* place, size_t size);

// How much more the process may map by its limit of address space (RLIMIT_AS), or, if it has none, of data
// (RLIMIT_DATA). 0: nothing, or there is no limit.
size_t room_left();

// Unmaps address space. False: refused (the process has no mapping left).
bool unmap(void* address, size_t size);

// Does the process get another mapping, of the 65,530 that it may have? The pages, two or more of one
// mapping, are two for a moment. No other bound has a say in that.
bool has_mapping_left(void* address, size_t size);

// Makes pages inaccessible and returns their memory. False: refused.
bool deny(void* address, size_t size);
// Makes pages accessible again after deny(); they read as zeros. False: no memory.
bool allow(void* address, size_t size);

// Gives address space a name for /proc/<process>/smaps. False: the system has no such names.
bool name_mapping(void* address, size_t size, const char* name);

// Unmaps all that map() mapped, on systems where the library may be unloaded.
void unmap_maps();

// Returns the memory of whole pages and keeps the address space, which then reads as zeros (after the next
// commit, if memory must be committed). False: refused, and the contents are unchanged.
bool purge(void* address, size_t size);

// Resizes a mapping in place. False: not possible.
bool resize_in_place(void* address, size_t old_size, size_t new_size);

// Moves the pages of a mapping to `target`, and replaces what is mapped there. False: refused, as always
// where the pages are of several mappings.
bool move_pages(void* address, size_t size, size_t new_size, void* target);

// The same, but the address space that they leave stays mapped, without memory. Also false for locked pages,
// and if the kernel cannot (Linux before 5.7).
bool lift_pages(void* address, size_t size, void* target);

// True if a page that is read before it is written costs a second fault at the write, and one instruction can
// write without a change: write_unchanged().
#if defined(__linux__) && (defined(__x86_64__) || defined(__i386__))
inline constexpr bool kSharesZeros = true;
inline void write_unchanged(char* byte) {
  asm volatile("orb $0, %0" : "+m"(*byte));
}
#else
inline constexpr bool kSharesZeros = false;
inline void write_unchanged(char*) {}
#endif

// Fetches the cache line of an address that will be read and then written. Otherwise a processor that has the
// line is asked twice. Any address is allowed.
inline void fetch_for_write(const void* p) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(p));
#else
  __builtin_prefetch(p, 1);
#endif
}

// Milliseconds of a monotonic clock with a resolution of a few milliseconds. No system call (vDSO).
uint64_t now_ms();

// Nanoseconds of a monotonic clock, for durations. No system call (vDSO).
uint64_t now_ns();

// Resident bytes of the process; 0 if /proc does not say. Three system calls.
size_t resident_bytes();

// A random number that nobody outside the process can know.
uint64_t random_word();

// Lets another thread run, if one is waiting.
void yield();

// True if the process has more rights than its user (AT_SECURE).
bool is_privileged();

// The name of an error number, such as "ENOMEM"; "an unknown error" for numbers that this layer never gets.
const char* error_name(int error);

// ---- Huge pages ----------------------------------------------------------------------------------
// Errors are error numbers, 0 for none. All may be slow: never call them with a lock held.

inline constexpr size_t kHugePage = size_t{2} << 20;
inline constexpr size_t kGiantPage = size_t{1} << 30;

// Does the system have transparent huge pages? If not, it has only reserved ones, or ones for users with the
// right to them: large_pages_granted().
#if defined(_WIN32)
inline constexpr bool kHasTransparent = false;
bool large_pages_granted();
#else
inline constexpr bool kHasTransparent = true;
inline bool large_pages_granted() {
  return false;
}
#endif

// Maps `size` bytes at a multiple of `align`, on reserved pages of `page` bytes (size and align are multiples
// of it), at a place that `may` agrees to. All pages are present, so touching them cannot fail later, and
// read as zeros. Null and *error: there are not enough of them, and nothing is mapped.
void* map_set_aside(size_t size, size_t align, size_t page, MayStand may, int* error);

// Asks for huge pages, or for small ones, where `address` … + size is touched from now on.
int advise_huge(void* address, size_t size, bool wanted);

// Can advise_huge have an effect for this process? If not, *why says why. `above`: the setting of this size
// refers to that of all sizes, so ask for that. At most four system calls.
enum class Setting : uint8_t { denied, allowed, above };
Setting transparent_setting(bool above, const char** why);
inline bool transparent_allowed(const char** why) {
  Setting setting = transparent_setting(false, why);
  if (setting == Setting::above) setting = transparent_setting(true, why);
  return setting == Setting::allowed;
}

// Moves the memory of whole huge pages' address space onto huge pages. The contents stay, and other threads
// may write meanwhile.
int collapse(void* address, size_t size);

// Bit 0 of page[i]: the i-th page of the range has memory. False: the system does not say.
bool find_touched(void* address, size_t size, unsigned char* page);

// Makes all memory of the range present; contents stay.
int populate(void* address, size_t size);

// Maps small pages, which read as zeros, in place of what is mapped there, whose pages return to the system.
// False: refused, and nothing has changed.
bool replace_by_small(void* address, size_t size);

// Memory that is available without taking it from others, within the limits of the process's group; 0 if the
// system does not say.
size_t available_bytes();

// The most memory that the process's control group and the groups around it may have, or the machine's memory
// if that is less. False: call again; the first answer takes several calls, of at most four system calls
// each. Later ones read one file again, which takes three. One thread at a time.
bool group_limit(size_t* limit);

// ---- What the region log needs -------------------------------------------------------------------

unsigned process_id();

// The name of the program, ended by NUL; empty if the system does not say.
void program_name(char* out, size_t room);

// Opens the file for appending, and creates it if necessary. The descriptor is out of the way of the
// program's own, and closed on exec. Returns -1 and *error on failure. On Windows, if `path` cannot be
// opened, the file is in the folder for temporary files, and *error says why.
int open_append(const char* path, int* error);

// Makes `path` absolute, in `room` bytes. False: it does not fit, or the folder is unknown.
bool absolute_path(const char* path, char* out, size_t room);

// Identifies an open file, because another one may later have the same descriptor; 0: it is closed.
uint64_t file_identity(int fd);

// "20261121-081502" (UTC) with its NUL into `out`, which has 16 bytes.
void write_time(char* out);

// Writes what the machine and the process are now to `fd`, as lines of "name: value": system, kernel, CPU,
// memory, commit limits, processes, uptime, rights, huge pages, limits. Allocates no memory.
void describe_machine(int fd);

// Bytes of the process that are on huge pages now, of both kinds. Slow: it reads the whole memory map.
struct HugeBytes {
  size_t transparent, reserved;
};
HugeBytes huge_bytes_in_use();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_OS_H
