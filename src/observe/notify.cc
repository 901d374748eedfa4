#include "observe/notify.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/linux/uncancelled.h"

namespace hummock::observe {
namespace {

constexpr char kName[] = "HUMMOCK_RUN_NOTIFY=";

// Reads digits up to `end`, stepping over it; false when there are none or too many.
bool read_number(const char** text, char end, uint64_t* out) {
  uint64_t number = 0;
  const char* at = *text;
  for (; *at >= '0' && *at <= '9'; ++at) {
    if (at - *text >= 19) return false;
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  }
  if (at == *text || *at != end) return false;
  *text = at + (end != '\0');
  *out = number;
  return true;
}

// Children inherit the variable after the descriptor is closed, and may hold something else under its
// number: the inode tells whether it is still the pipe that was meant.
bool is_pipe(int fd, uint64_t inode) {
  struct stat about;
  return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) && about.st_ino == inode;
}

const char* find_variable() {
  if (environ == nullptr) return nullptr;
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, kName, sizeof(kName) - 1) == 0) return *entry + sizeof(kName) - 1;
  }
  return nullptr;
}

}  // namespace

void notify_started(bool (*is_active)()) {
  const char* text = find_variable();
  uint64_t fd = 0;
  uint64_t inode = 0;
  if (text == nullptr || !read_number(&text, ':', &fd) || !read_number(&text, '\0', &inode)) return;
  if (fd > INT32_MAX) return;
  const base::KeepErrno keep;
  if (is_pipe(static_cast<int>(fd), inode)) {
    const char byte = is_active() ? '1' : '0';
    // A pipe just made has room for a byte; when its reader is gone, nobody wants to know.
    if (os::write_all(static_cast<int>(fd), &byte, 1)) close(static_cast<int>(fd));
  }
}

}  // namespace hummock::observe
