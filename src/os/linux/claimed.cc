// Memory that another process shares with this one.

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/system.h"
#include "os/os.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#endif

namespace hummock::os {
namespace {

// Digits up to `end`, and over it; false when there are none or too many.
bool read_number(const char** text, char end, uint64_t* out) {
  uint64_t number = 0;
  const char* at = *text;
  for (; *at >= '0' && *at <= '9' && at - *text < 19; ++at)
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  if (at == *text || *at != end) return false;
  *text = at + (end != '\0');
  *out = number;
  return true;
}

const char* find_variable(const char* name) {
  const size_t length = strlen(name);
  const char* const* entry = base::environment();
  for (; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0) return *entry + length;
  }
  return nullptr;
}

// The memory that is meant. No bytes: the descriptor is something else by now, or it could still be cut.
struct Shared {
  int fd;
  size_t bytes;
};
Shared find_shared(const char* variable) {
  const char* text = find_variable(variable);
  uint64_t fd = 0, inode = 0;
  if (text == nullptr || !read_number(&text, ':', &fd) || !read_number(&text, '\0', &inode)) return {-1, 0};
  if (fd > INT_MAX) return {-1, 0};
  const int number = static_cast<int>(fd);
  struct stat about;
  if (fstat(number, &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != inode) return {-1, 0};
  const int seals = fcntl(number, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return {-1, 0};
  return {number, static_cast<size_t>(about.st_size)};
}

// Null: it is somebody's.
void* claim_part(int fd, size_t offset, size_t size, size_t claim) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return nullptr;
  auto* word = reinterpret_cast<uint32_t*>(static_cast<char*>(mapped) + claim);
  uint32_t none = 0;
  // Relaxed: nobody else writes there before.
  if (__atomic_compare_exchange_n(word, &none, process_id(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return mapped;
  munmap(mapped, size);
  return nullptr;
}

}  // namespace

void* claim_shared(const char* variable, size_t size, size_t claim) {
  const base::KeepErrno keep;
  const Shared shared = find_shared(variable);
  void* part = nullptr;
  for (size_t offset = 0; part == nullptr && shared.bytes - offset >= size; offset += size)
    part = claim_part(shared.fd, offset, size, claim);
  return part;
}

bool shares_memory(const char* variable) {
  const base::KeepErrno keep;
  return find_shared(variable).bytes != 0;
}

}  // namespace hummock::os
