#include "children.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "../battery/battery.h"

namespace battery {
namespace {

constexpr unsigned kHangs = 600;  // seconds

// A file in memory that stands in for the children's standard error, empty.
int messages() {
  static const int fd = memfd_create("messages", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) end(kFailed, "no file in memory");
  return fd;
}

}  // namespace

Ending in_child(void (*work)(const void*), const void* argument) {
  static char text[4096];
  const int errors = messages();
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) end(kFailed, "no child: %s", strerror(errno));
  if (pid == 0) {
    dup2(errors, STDERR_FILENO);
    alarm(kHangs);
    work(argument);
    exit(kPassed);  // as programs end: the allocator looks once more
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) end(kFailed, "lost a child");
  }
  text[std::max<ssize_t>(pread(errors, text, sizeof(text) - 1, 0), 0)] = 0;
  if (WIFEXITED(status)) return {WEXITSTATUS(status), 0, text};
  return {-1, WTERMSIG(status), text};
}

void* shared_memory(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) end(kFailed, "no memory to share");
  return memory;
}

void leave_no_cores() {
  const rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
}

}  // namespace battery
