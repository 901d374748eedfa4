// Told by the kernel that memory is short (PSI): in the process's control group, else on the machine.
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/linux/files.h"
#include "os/linux/uncancelled.h"
#include "os/os.h"
#include "os/thread.h"

namespace hummock::os {
namespace {

// Tasks waited for memory for 100 ms of 2 s; without privileges only multiples of 2 s are taken.
constexpr char kTrigger[] = "some 100000 2000000";

// Whose file the trigger is; else the program has closed it, and the number is another file's. Atomic,
// relaxed: one thread waits, and that of a child of fork begins anew.
int trigger = -1;
uint64_t identity;

int open_trigger(const char* path) {
  const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (write(fd, kTrigger, sizeof kTrigger) == static_cast<ssize_t>(sizeof kTrigger)) return move_away(fd);
  close(fd);
  return -1;
}

// "0::/a/b": version 2, which alone has a file for it. In a container the path may be that outside of it:
// then the root is the own group.
int open_trigger_of_group() {
  constexpr char kRoot[] = "/sys/fs/cgroup", kFile[] = "/memory.pressure";
  char groups[4096], path[1024];
  if (read_file("/proc/self/cgroup", groups, sizeof groups) == 0) return -1;
  const char* found = strncmp(groups, "0::/", 4) == 0 ? groups : strstr(groups, "\n0::/");
  if (found == nullptr) return -1;
  found = strchr(found, '/');
  const size_t length = strcspn(found, "\n");
  if (sizeof kRoot + length + sizeof kFile > sizeof path) return -1;
  memcpy(path, kRoot, sizeof kRoot - 1);
  memcpy(path + sizeof kRoot - 1, found, length);
  memcpy(path + sizeof kRoot - 1 + (length > 1 ? length : 0), kFile, sizeof kFile);
  const int fd = open_trigger(path);
  memcpy(path + sizeof kRoot - 1, kFile, sizeof kFile);
  return fd >= 0 ? fd : open_trigger(path);
}

int trigger_in_use() {
  const int fd = __atomic_load_n(&trigger, __ATOMIC_RELAXED);
  return fd >= 0 && file_identity(fd) == identity ? fd : -1;
}

}  // namespace

void watch_pressure_at(int fd) {
  identity = fd >= 0 ? file_identity(fd) : 0;
  __atomic_store_n(&trigger, fd, __ATOMIC_RELAXED);
}

bool watch_pressure() {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  const int before = trigger_in_use();  // of the parent of a fork
  if (before >= 0) close(before);
  int fd = open_trigger_of_group();
  if (fd < 0) fd = open_trigger("/proc/pressure/memory");
  watch_pressure_at(fd);
  return fd >= 0;
}

bool sleep_or_pressure(unsigned ms) {
  const int fd = trigger_in_use();
  if (fd >= 0) {
    const Uncancelled uncancelled;
    pollfd wait = {fd, POLLPRI, 0};
    const int ready = poll(&wait, 1, static_cast<int>(ms));
    if (ready <= 0) return false;
    if (wait.revents == POLLPRI) return true;
    watch_pressure_at(-1);  // the group is gone, or the file is none of ours
  }
  sleep_ms(ms);
  return false;
}

}  // namespace hummock::os
