// Arenas: the memory of spaces, from Linux.
#include "space/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/linux/uncancelled.h"
#include "os/os.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace hummock::space {
namespace {

constexpr unsigned kHugeTries = 4;

void* raw_map(void* hint, size_t size, int protection, int flags, int fd) {
  return mmap(hint, size, protection, flags, fd, 0);
}

char* map_nothing(size_t size) {
  void* p = arena_calls.map(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

// Kernels before 5.14 have no call for it: touch every page.
void touch(char* from, size_t size) {
  for (size_t at = 0; at < size; at += os::page_size()) {
    volatile char* page = from + at;
    *page = *page;
  }
}

// Counts from the lines of smaps. They may be read while malloc must not be called, so it uses only libc's
// plain functions.
struct HugeCount {
  uintptr_t from, to;
  bool ours = false;
  size_t bytes = 0;

  void read_line(const char* line) {
    char* rest;
    const uintptr_t start = strtoul(line, &rest, 16);
    if (rest != line && *rest == '-') {
      ours = start < to && strtoul(rest + 1, nullptr, 16) > from;
      return;
    }
    if (ours) bytes += kilobytes(line, "AnonHugePages:") * 1024 + kilobytes(line, "Private_Hugetlb:") * 1024;
  }

  static size_t kilobytes(const char* line, const char* field) {
    const size_t length = strlen(field);
    return strncmp(line, field, length) == 0 ? strtoul(line + length, nullptr, 10) : 0;
  }
};

}  // namespace

ArenaCalls arena_calls = {
    raw_map, munmap, mprotect, madvise, [](void* a, size_t n) { return mlock(a, n); }, os::set_file_length};

void* arena_reserve(size_t size, size_t align) {
  const size_t guard = os::page_size();
  size_t total;
  if (__builtin_add_overflow(size, 2 * guard + align, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  char* all = map_nothing(total);
  if (all == nullptr) return nullptr;
  char* start = reinterpret_cast<char*>(base::align_up(reinterpret_cast<uintptr_t>(all) + guard, align));
  char* end = start + size + guard;
  if (start - guard > all) arena_calls.unmap(all, static_cast<size_t>(start - guard - all));
  if (all + total > end) arena_calls.unmap(end, static_cast<size_t>(all + total - end));
  return start;
}

// A refused mmap of huge pages has unmapped what was at the place already. Another thread's mapping may be in
// the hole then. So the hole is made here, nothing is replaced, and after a refusal only the guards are ours.
void* arena_huge(size_t size) {
  const size_t guard = os::page_size();
  for (unsigned tries = 0; tries < kHugeTries; ++tries) {
    char* start = static_cast<char*>(arena_reserve(size, os::kHugePage));
    if (start == nullptr) return nullptr;
    if (arena_calls.unmap(start, size) != 0) {  // it would be one mapping more
      const int why = errno;
      arena_release(start, size);
      errno = why;
      return nullptr;
    }
    void* huge = arena_calls.map(start, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED_NOREPLACE, -1);
    if (huge == start) return start;
    const int why = huge == MAP_FAILED ? errno : EEXIST;  // Linux before 4.17 maps elsewhere
    if (huge != MAP_FAILED) arena_calls.unmap(huge, size);
    arena_calls.unmap(start - guard, guard);
    arena_calls.unmap(start + size, guard);
    errno = why;
    if (why != EEXIST) break;  // else another thread was quicker
  }
  return nullptr;
}

bool arena_release(void* address, size_t size) {
  const size_t guard = os::page_size();
  return arena_calls.unmap(static_cast<char*>(address) - guard, size + 2 * guard) == 0;
}

bool arena_commit(void* address, size_t size) {
  return arena_calls.protect(address, size, PROT_READ | PROT_WRITE) == 0;
}

bool arena_decommit(void* address, size_t size) {
  return arena_calls.map(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1) != MAP_FAILED;
}

bool arena_purge(void* address, size_t size) {
  return arena_calls.advise(address, size, MADV_DONTNEED) == 0;
}

bool arena_populate(void* address, size_t size) {
  if (arena_calls.advise(address, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno == EFAULT) errno = ENOMEM;  // a SIGBUS when touched: the group may have no more huge pages
  if (errno != EINVAL) return false;
  touch(static_cast<char*>(address), size);
  return true;
}

bool arena_lock(void* address, size_t size) {
  return arena_calls.lock(address, size) == 0;
}

bool arena_wish_huge(void* address, size_t size) {
  return arena_calls.advise(address, size, MADV_HUGEPAGE) == 0;
}

bool arena_keep_from_fork(void* address, size_t size) {
  return arena_calls.advise(address, size, MADV_DONTFORK) == 0;
}

size_t arena_huge_bytes(const void* address, size_t size) {
  const base::KeepErrno keep;
  const os::Uncancelled uncancelled;
  HugeCount count = {reinterpret_cast<uintptr_t>(address), reinterpret_cast<uintptr_t>(address) + size};
  const int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    char text[1024];
    char line[256];
    size_t length = 0;
    for (ssize_t got; (got = read(fd, text, sizeof text)) > 0;) {
      for (ssize_t i = 0; i < got; ++i) {
        if (text[i] != '\n') {
          if (length < sizeof(line) - 1) line[length++] = text[i];
          continue;
        }
        line[length] = 0;
        count.read_line(line);
        length = 0;
      }
    }
    close(fd);
  }
  return count.bytes;
}

int shared_create(const char* name, size_t size) {
  const os::Uncancelled uncancelled;
  const int fd = name != nullptr ? shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                                 : memfd_create("hummock space", MFD_CLOEXEC);
  if (fd < 0 || arena_calls.truncate(fd, size) == 0) return fd;
  const int why = errno;
  close(fd);
  if (name != nullptr) shm_unlink(name);
  errno = why;
  return -1;
}

void shared_close(int descriptor) {
  const os::Uncancelled uncancelled;
  close(descriptor);
}

int shared_open(const char* name) {
  return shm_open(name, O_RDWR | O_CLOEXEC, 0);
}

bool shared_unlink(const char* name) {
  return shm_unlink(name) == 0;
}

size_t shared_size(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 && about.st_size > 0 ? static_cast<size_t>(about.st_size) : 0;
}

void* shared_map(int fd, size_t size) {
  void* p = arena_calls.map(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace hummock::space
