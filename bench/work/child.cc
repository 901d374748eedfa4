#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "clock.h"
#include "memory.h"
#include "run.h"

extern char** environ;

namespace {

constexpr int kLook = 5;  // milliseconds between looks at a child's memory

int remove_entry(const char* path, const struct stat*, int, struct FTW*) {
  return remove(path);
}

// Until the child ends; the memory of `watched` goes into the run's series. Without a descriptor of a process
// wait4 alone waits, and there is no series.
void watch_child(pid_t child, Run& run, pid_t watched) {
#ifdef SYS_pidfd_open
  const int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (process < 0) return;
  pollfd end = {process, POLLIN, 0};
  while (poll(&end, 1, kLook) == 0) run.watch(resident_bytes_of(watched));
  close(process);
#else
  (void)child;
  (void)run;
  (void)watched;
#endif
}

// The environment, with what is preloaded here or without. Where nothing is, libc is: a program that brings
// an allocator of its own, as redis-server does, runs on libc's all the same.
char** environment_for(Preload preload) {
  static char libc[] = "LD_PRELOAD=libc.so.6";
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  char** made = arena_array<char*>(count + 2);
  size_t kept = 0;
  bool preloaded = false;
  for (size_t i = 0; i < count; ++i) {
    const bool it = strncmp(environ[i], "LD_PRELOAD=", 11) == 0 && environ[i][11] != 0;
    if (!it || preload == Preload::kKeep) made[kept++] = environ[i];
    preloaded |= it;
  }
  if (!preloaded && preload == Preload::kKeep) made[kept++] = libc;
  return made;
}

}  // namespace

// ---- Folder -----------------------------------------------------------------------------------------

Folder::Folder() {
  const char* base = getenv("TMPDIR");
  snprintf(path_, sizeof path_, "%s/hummock-bench-XXXXXX", base != nullptr && *base != 0 ? base : "/tmp");
  if (mkdtemp(path_) == nullptr || chdir(path_) != 0) fail(3, "%s: %s", path_, strerror(errno));
}

Folder::~Folder() {
  if (chdir("/") == 0) nftw(path_, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void Folder::write(const char* name, const char* text, size_t length) {
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = file >= 0 && ::write(file, text, length) == static_cast<ssize_t>(length);
  if (!written || close(file) != 0) fail(3, "%s cannot be written: %s", name, strerror(errno));
}

// ---- Child ------------------------------------------------------------------------------------------

bool is_installed(const char* program) {
  const char* path = getenv("PATH");
  while (path != nullptr && *path != 0) {
    const size_t length = strcspn(path, ":");
    char place[512];
    snprintf(place, sizeof place, "%.*s/%s", static_cast<int>(length), path, program);
    if (access(place, X_OK) == 0) return true;
    path += path[length] == ':' ? length + 1 : length;
  }
  return false;
}

pid_t start_child(const char* const* arguments, const char* input, Preload preload) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input == nullptr ? "/dev/null" : input, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, const_cast<char* const*>(arguments),
                                 environment_for(preload));
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(3, "%s cannot be started: %s", arguments[0], strerror(error));
  return child;
}

ChildUse wait_for_child(pid_t child, const char* name, uint64_t started, Run& run, pid_t watched) {
  if (watched != 0) watch_child(child, run, watched);
  int status = 0;
  rusage usage;
  while (wait4(child, &status, 0, &usage) < 0)
    if (errno != EINTR) fail(3, "%s: %s", name, strerror(errno));
  const double seconds = static_cast<double>(nanoseconds() - started) / 1e9;
  if (WIFSIGNALED(status)) fail(3, "%s was killed by signal %d", name, WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) fail(3, "%s ended with status %d", name, WEXITSTATUS(status));
  return {seconds,
          seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          seconds_of(usage.ru_stime),
          static_cast<size_t>(usage.ru_maxrss) * 1024,
          static_cast<uint64_t>(usage.ru_minflt),
          static_cast<uint64_t>(usage.ru_majflt)};
}

ChildUse run_child(Run& run, const char* const* arguments, const char* input) {
  const uint64_t started = nanoseconds();
  const pid_t child = start_child(arguments, input);
  return wait_for_child(child, arguments[0], started, run, child);
}
