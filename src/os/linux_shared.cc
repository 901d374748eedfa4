// Memory that other processes of the user can open.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/linux_files.h"
#include "os/linux_uncancelled.h"
#include "os/os.h"
#include "os/thread.h"

namespace hummock::os {
namespace {

// Programs number their own from 3, and close some of them blindly. The second is for those that may have
// few.
constexpr int kFirstDescriptor = 500;
constexpr int kNearDescriptor = 40;

constexpr unsigned kClose = 1;      // MFD_CLOEXEC
constexpr unsigned kSealing = 2;    // MFD_ALLOW_SEALING
constexpr unsigned kNoExecute = 8;  // MFD_NOEXEC_SEAL, since Linux 6.3, which warns where it is not said

int create(const char* name) {
  const long fd = syscall(SYS_memfd_create, name, kClose | kSealing | kNoExecute);
  if (fd >= 0 || errno != EINVAL) return static_cast<int>(fd);
  return static_cast<int>(syscall(SYS_memfd_create, name, kClose | kSealing));
}

// Its length is fixed for good: who has it open could else cut it, and end us with SIGBUS.
bool set_length(int fd, size_t size) {
  return set_file_length(fd, size) == 0 &&
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

}  // namespace

int move_away(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor);
  if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, kNearDescriptor);
  if (high < 0) return fd;
  close(fd);
  return high;
}

void* map_shared(const char* name, size_t size) {
  const int saved = errno;
  const Uncancelled uncancelled;
  void* mapped = MAP_FAILED;
  const int fd = create(name);
  if (fd >= 0) {
    if (set_length(fd, size)) mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mapped == MAP_FAILED ? close(fd) : move_away(fd);
  }
  errno = saved;
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void program_name(char* out, size_t room) {
  out[read_file("/proc/self/comm", out, room)] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

unsigned thread_id() {
  return static_cast<unsigned>(syscall(SYS_gettid));
}

}  // namespace hummock::os
