// The os layer on Linux.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/linux/told.h"
#include "os/linux/uncancelled.h"
#include "os/os.h"
#include "os/probe.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace hummock::os {
namespace {

void* raw_map(void* hint, size_t size, int protection, int flags) {
  return mmap(hint, size, protection, flags, -1, 0);
}
int raw_unmap(void* address, size_t size) {
  return munmap(address, size);
}
int raw_advise(void* address, size_t size, int advice) {
  return madvise(address, size, advice);
}
void* raw_remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return mremap(address, old_size, new_size, flags, target);
}

constexpr int kCold = 20;  // MADV_COLD, newer than the C library's headers may be

constexpr uintptr_t kLeastAddress = uintptr_t{1} << 25;  // in the region map 0 is no region
constexpr uintptr_t kLowAddress = uintptr_t{1} << 30;

char* map_at(void* hint, size_t size) {
  void* p = calls.map(hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

bool fits(const char* mapped, size_t before, size_t align) {
  if (reinterpret_cast<uintptr_t>(mapped) < kLeastAddress) return false;
  return base::align_up(reinterpret_cast<uintptr_t>(mapped) + before, align) ==
         reinterpret_cast<uintptr_t>(mapped) + before;
}

// Under valgrind the system maps upwards from a low address: look for a place of our own above.
char* map_high(size_t total, size_t align, size_t before) {
  // A hint: two threads may try the same place.
  static uintptr_t next = uintptr_t{1} << (sizeof(void*) == 8 ? 36 : 30);
  for (int tries = 0; tries < 64; ++tries) {
    const uintptr_t step = base::align_up(total, align);
    const uintptr_t wish = __atomic_fetch_add(&next, step, __ATOMIC_RELAXED);
    char* p = map_at(reinterpret_cast<void*>(base::align_up(wish + before, align) - before), total);
    if (fits(p, before, align)) return p;
    if (p != nullptr) calls.unmap(p, total);
  }
  return nullptr;
}

// Reserves more than needed and cuts the surplus off: always works where there is room for it.
char* map_with_surplus(size_t total, size_t align, size_t before) {
  size_t reserve;
  if (__builtin_add_overflow(total, align, &reserve)) return nullptr;
  char* all = map_at(nullptr, reserve);
  if (all == nullptr) return nullptr;
  char* start =
      reinterpret_cast<char*>(base::align_up(reinterpret_cast<uintptr_t>(all) + before, align)) - before;
  char* end = start + total;
  if (start > all) calls.unmap(all, static_cast<size_t>(start - all));
  if (all + reserve > end) calls.unmap(end, static_cast<size_t>(all + reserve - end));
  return start;
}

}  // namespace

Calls calls = {raw_map, raw_unmap, raw_advise, raw_remap};

size_t page_size() {
  static size_t cached;
  size_t size = __atomic_load_n(&cached, __ATOMIC_RELAXED);  // all writers write the same
  if (size == 0) {
    size = getauxval(AT_PAGESZ);
    if (size == 0) size = 4096;
    __atomic_store_n(&cached, size, __ATOMIC_RELAXED);
  }
  return size;
}

namespace {

char* map_aligned_now(size_t size, size_t align, size_t before) {
  const size_t total = before + size;
  char* probe = map_at(nullptr, total);
  if (probe == nullptr) return nullptr;  // there is not even room for the bare size
  if (fits(probe, before, align)) return probe + before;
  // The system maps downwards, so the aligned place just below the probe is usually free.
  const uintptr_t wish = base::align_down(reinterpret_cast<uintptr_t>(probe) + before, align) - before;
  calls.unmap(probe, total);
  if (reinterpret_cast<uintptr_t>(probe) < kLowAddress) {
    char* high = map_high(total, align, before);
    return high == nullptr ? nullptr : high + before;
  }
  char* second = map_at(reinterpret_cast<void*>(wish), total);
  if (fits(second, before, align)) return second + before;
  if (second != nullptr) calls.unmap(second, total);
  char* cut = map_with_surplus(total, align, before);
  return cut == nullptr ? nullptr : cut + before;
}

}  // namespace

void* told(void* mapped, size_t size) {
  if (mapped != nullptr) HUMMOCK_PROBE2(hummock, map, mapped, size);
  return mapped;
}

void* map(size_t size) {
  const base::KeepErrno keep;
  return told(map_at(nullptr, size), size);
}

void* map_aligned(size_t size, size_t align, size_t before) {
  const base::KeepErrno keep;
  return told(map_aligned_now(size, align, before), size);
}

// Linux before 4.17 takes the flag for none, and the place for a hint.
Filled map_if_free(void* place, size_t size) {
  const base::KeepErrno keep;
  constexpr int kOnlyIfFree = 0x100000;  // MAP_FIXED_NOREPLACE
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | kOnlyIfFree;
  void* got = calls.map(place, size, PROT_READ | PROT_WRITE, flags);
  if (got == place) return told(got, size), Filled::yes;
  if (got == MAP_FAILED) return errno == EEXIST ? Filled::taken : Filled::refused;
  calls.unmap(got, size);
  return Filled::taken;
}

bool unmap(void* address, size_t size) {
  const base::KeepErrno keep;
  if (calls.unmap(address, size) != 0) return false;
  HUMMOCK_PROBE2(hummock, unmap, address, size);
  return true;
}

bool has_mapping_left(void* address, size_t size) {
  const base::KeepErrno keep;
  if (calls.advise(address, size / 2, MADV_DONTDUMP) != 0) return errno != EAGAIN && errno != ENOMEM;
  calls.advise(address, size / 2, MADV_DODUMP);
  return true;
}

bool deny(void* address, size_t size) {
  const base::KeepErrno keep;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return calls.map(address, size, PROT_NONE, flags) != MAP_FAILED;
}

// mmap would be refused where the process has no mapping left.
bool allow(void* address, size_t size) {
  const base::KeepErrno keep;
  return mprotect(address, size, PROT_READ | PROT_WRITE) == 0;
}

void unmap_maps() {}

bool purge(void* address, size_t size) {
  const base::KeepErrno keep;
  if (calls.advise(address, size, MADV_DONTNEED) != 0) return false;
  HUMMOCK_PROBE2(hummock, purge, address, size);
  return true;
}

bool resize_in_place(void* address, size_t old_size, size_t new_size) {
  const base::KeepErrno keep;
  return calls.remap(address, old_size, new_size, 0, nullptr) != MAP_FAILED;
}

namespace {

// Pages of several mappings, because the program locked or advised a part of its block, cannot move, or only
// one mapping after the other. Linux notices when the target is unmapped already, and another thread may take
// it then. So the system is asked before, for a page more: with one mapping it is short of room, or gives it.
bool is_one_mapping(void* address, size_t size) {
  const size_t more = size + page_size();
  if (calls.remap(address, size, more, 0, nullptr) == MAP_FAILED) return errno == ENOMEM;
  calls.remap(address, more, size, 0, nullptr);
  return true;
}

// The mapping that pages leave would not be locked any more, not even where other blocks are. Locked pages
// cannot be made cold. Others can: that costs little, or the block's first huge page.
bool is_locked(void* address) {
  return calls.advise(address, page_size(), kCold) != 0;
}

// Emulators may take the place that pages were moved away from for unmapped, as qemu's user mode does: then
// nothing can be given back there any more; with 32 bits a read there faults. So it is asked for first.
bool place_is_kept() {
  const size_t page = page_size();
  void* room = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  volatile char* from = static_cast<char*>(room);
  *from = 1;
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  bool kept = mremap(room, page, page, flags, static_cast<char*>(room) + page) != MAP_FAILED;
  if (kept) {
    const int alone = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void* other = mmap(room, page, PROT_NONE, alone, -1, 0);
    kept = other == MAP_FAILED && errno == EEXIST && *from == 0;
    if (other != MAP_FAILED && other != room) munmap(other, page);
  }
  if (kept) {
    *from = 1;
    kept = madvise(room, page, MADV_DONTNEED) == 0 && *from == 0;
  }
  munmap(room, 2 * page);
  return kept;
}

}  // namespace

bool move_pages(void* address, size_t size, size_t new_size, void* target) {
  const base::KeepErrno keep;
  return is_one_mapping(address, size) &&
         calls.remap(address, size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED;
}

bool lift_pages(void* address, size_t size, void* target) {
  const base::KeepErrno keep;
  static int8_t possible;  // 0: not tried yet; atomic, relaxed: two threads find the same
  int8_t known = __atomic_load_n(&possible, __ATOMIC_RELAXED);
  if (known == 0) {
    known = place_is_kept() ? 1 : -1;
    __atomic_store_n(&possible, known, __ATOMIC_RELAXED);
  }
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  return known == 1 && !is_locked(address) && is_one_mapping(address, size) &&
         calls.remap(address, size, size, flags, target) != MAP_FAILED;
}

const char* error_name(int error) {
  static constexpr struct {
    int number;
    const char* name;
  } kNames[] = {
#define HUMMOCK_ERROR(name) {name, #name}
      HUMMOCK_ERROR(EPERM),   HUMMOCK_ERROR(ENOENT),     HUMMOCK_ERROR(EINTR),  HUMMOCK_ERROR(EIO),
      HUMMOCK_ERROR(EBADF),   HUMMOCK_ERROR(EAGAIN),     HUMMOCK_ERROR(ENOMEM), HUMMOCK_ERROR(EACCES),
      HUMMOCK_ERROR(EFAULT),  HUMMOCK_ERROR(EBUSY),      HUMMOCK_ERROR(EEXIST), HUMMOCK_ERROR(ENODEV),
      HUMMOCK_ERROR(ENOTDIR), HUMMOCK_ERROR(EISDIR),     HUMMOCK_ERROR(EINVAL), HUMMOCK_ERROR(ENFILE),
      HUMMOCK_ERROR(EMFILE),  HUMMOCK_ERROR(ENOSPC),     HUMMOCK_ERROR(EROFS),  HUMMOCK_ERROR(ENAMETOOLONG),
      HUMMOCK_ERROR(ENOSYS),  HUMMOCK_ERROR(EOPNOTSUPP), HUMMOCK_ERROR(ENXIO),
#undef HUMMOCK_ERROR
  };
  for (const auto& each : kNames) {
    if (each.number == error) return each.name;
  }
  return "an unknown error";
}

namespace {

struct Sizes {
  size_t mapped, resident, data;  // bytes
};

// Zeros if they cannot be read.
Sizes sizes() {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[128];
  const ssize_t length = read(fd, text, sizeof text);
  close(fd);
  size_t pages[6] = {};  // the others are of no interest here
  ssize_t i = 0;
  for (size_t& number : pages) {
    for (; i < length && text[i] >= '0' && text[i] <= '9'; ++i) {
      number = number * 10 + static_cast<size_t>(text[i] - '0');
    }
    ++i;
  }
  return {pages[0] * page_size(), pages[1] * page_size(), pages[5] * page_size()};
}

size_t left_of(const rlimit& limit, size_t used) {
  return used != 0 && used < limit.rlim_cur ? static_cast<size_t>(limit.rlim_cur) - used : 0;
}

}  // namespace

size_t resident_bytes() {
  return sizes().resident;
}

size_t room_left() {
  const base::KeepErrno keep;
  rlimit space, data;
  if (getrlimit(RLIMIT_AS, &space) != 0) return 0;
  if (space.rlim_cur != RLIM_INFINITY) return left_of(space, sizes().mapped);
  return getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY ? left_of(data, sizes().data)
                                                                              : 0;
}

uint64_t random_word() {
  const base::KeepErrno keep;
  uint64_t word = 0;
  if (syscall(SYS_getrandom, &word, sizeof word, 1 /* GRND_NONBLOCK */) == sizeof word) return word;
  // Refused (seccomp), or too early: what the kernel gave the process at its start, mixed so that it does not
  // give away what libc makes of it.
  if (const void* start = reinterpret_cast<const void*>(getauxval(AT_RANDOM)))
    memcpy(&word, start, sizeof word);
  word = (word ^ now_ns() ^ reinterpret_cast<uintptr_t>(&word)) * 0x9e3779b97f4a7c15u;
  return (word ^ (word >> 31)) * 0xbf58476d1ce4e5b9u;
}

void yield() {
  sched_yield();
}

bool is_privileged() {
  return getauxval(AT_SECURE) != 0;
}

bool name_mapping(void* address, size_t size, const char* name) {
  const base::KeepErrno keep;
  return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, address, size, name) == 0;
}

}  // namespace hummock::os
