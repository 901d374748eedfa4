// The machine and the process, for the head of the region log.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/message.h"
#include "os/linux/files.h"
#include "os/linux/uncancelled.h"
#include "os/os.h"

namespace hummock::os {
namespace {

using base::Line;
using base::write_line;

constexpr size_t kRoom = 4096;

Line begin(const char* name) {
  Line line("");
  line.text(name).text(": ");
  return line;
}

// Up to the end of its first line.
Line& first_line(Line& line, const char* text) {
  return line.text(text, strcspn(text, "\n"));
}

void put_file(int fd, const char* name, const char* path) {
  char text[512];
  if (read_file(path, text, sizeof text) == 0) return;
  Line line = begin(name);
  write_line(fd, first_line(line, text));
}

void put_bytes(Line& line, const char* what, uint64_t kib) {
  if (kib == kNoNumber) return;
  line.text(line.data()[line.size() - 2] == ':' ? "" : ", ").text(what).text(" ").bytes(kib << 10);
}

void describe_system(int fd) {
  char text[kRoom];
  size_t length = 0;
  if (read_file("/etc/os-release", text, sizeof text) != 0) {
    if (const char* name = text_after(text, "PRETTY_NAME", &length)) {
      write_line(fd, begin("system").text(name, length));
    }
  }
  utsname about;
  if (uname(&about) == 0) {
    Line line = begin("kernel");
    write_line(fd, line << about.sysname << " " << about.release << " " << about.machine);
  }
  Line line = begin("cpu");
  read_file("/proc/cpuinfo", text, sizeof text);
  if (const char* name = text_after(text, "model name", &length)) line.text(name, length).text(", ");
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) line << CPU_COUNT(&set) << " for this process, ";
  write_line(fd, line << sysconf(_SC_NPROCESSORS_ONLN) << " online");
}

void describe_memory(int fd) {
  char text[kRoom];
  if (read_file("/proc/meminfo", text, sizeof text) == 0) return;
  Line memory = begin("memory");
  put_bytes(memory, "total", number_after(text, "MemTotal"));
  put_bytes(memory, "available", number_after(text, "MemAvailable"));
  put_bytes(memory, "cached", number_after(text, "Cached"));
  put_bytes(memory, "swap", number_after(text, "SwapTotal"));
  put_bytes(memory, "swap free", number_after(text, "SwapFree"));
  write_line(fd, memory);
  Line commit = begin("commit");
  put_bytes(commit, "limit", number_after(text, "CommitLimit"));
  put_bytes(commit, "committed", number_after(text, "Committed_AS"));
  const uint64_t mode = number_in_file("/proc/sys/vm/overcommit_memory", "");
  if (mode != kNoNumber) commit << ", overcommit_memory " << mode;
  write_line(fd, commit);
  put_file(fd, "cgroup memory limit", "/sys/fs/cgroup/memory.max");
}

// Folders of /proc whose names are numbers. opendir would allocate.
unsigned count_processes() {
  const Uncancelled uncancelled;
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  unsigned count = 0;
  alignas(8) char room[kRoom];
  for (long got; (got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(room + at);
      count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
      at += entry->d_reclen;
    }
  }
  close(folder);
  return count;
}

// "0.11 0.20 0.30 1/234 5678": 234 is the number of threads.
void describe_load(int fd) {
  char text[128];
  Line line = begin("processes");
  line << count_processes();
  read_file("/proc/loadavg", text, sizeof text);
  if (const char* threads = strchr(text, '/')) {
    line.text(", threads ").text(threads + 1, strspn(threads + 1, "0123456789"));
  }
  write_line(fd, line);
  const uint64_t seconds = number_in_file("/proc/uptime", "");
  if (seconds != kNoNumber) {
    Line up = begin("uptime");
    write_line(fd, up << seconds / 60 << " minutes");
  }
}

void put_limit(int fd, const char* name, int which) {
  rlimit limit;
  if (getrlimit(which, &limit) != 0) return;
  Line line = begin(name);
  if (limit.rlim_cur == RLIM_INFINITY) {
    line.text("unlimited");
  } else {
    line.bytes(limit.rlim_cur);
  }
  write_line(fd, line);
}

void describe_rights(int fd) {
  char text[kRoom];
  size_t length = 0;
  Line line = begin("rights");
  line << "user " << getuid() << ", effective " << geteuid();
  read_file("/proc/self/status", text, sizeof text);
  if (const char* set = text_after(text, "CapEff", &length)) line.text(", capabilities ").text(set, length);
  write_line(fd, line);
  put_limit(fd, "locked memory limit", RLIMIT_MEMLOCK);
  put_limit(fd, "address space limit", RLIMIT_AS);
}

void put_pool(int fd, const char* name, const char* folder) {
  Line line = begin(name);
  bool any = false;
  constexpr const char* kFiles[] = {"nr_hugepages", "free_hugepages", "nr_overcommit_hugepages"};
  for (const char* what : kFiles) {
    Line path("");
    path << "/sys/kernel/mm/hugepages/" << folder << "/" << what;
    char at[128];
    memcpy(at, path.data(), path.size());
    at[path.size()] = '\0';
    const uint64_t number = number_in_file(at, "");
    if (number == kNoNumber) continue;
    line << (any ? ", " : "") << what << " " << number;
    any = true;
  }
  if (any) write_line(fd, line);
}

void describe_huge_pages(int fd) {
  put_pool(fd, "huge pages 2M", "hugepages-2048kB");
  put_pool(fd, "huge pages 1G", "hugepages-1048576kB");
  put_file(fd, "transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
  put_file(fd, "transparent defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
  Line line = begin("PR_SET_THP_DISABLE");
  write_line(fd, line << (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 ? "set" : "not set"));
}

}  // namespace

void describe_machine(int fd) {
  const base::KeepErrno keep;
  char program[512];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length > 0) write_line(fd, begin("program").text(program, static_cast<size_t>(length)));
  describe_system(fd);
  describe_memory(fd);
  describe_load(fd);
  describe_rights(fd);
  describe_huge_pages(fd);
}

HugeBytes huge_bytes_in_use() {
  char text[kRoom];
  HugeBytes sum = {};
  if (read_file("/proc/self/smaps_rollup", text, sizeof text) == 0) return sum;
  const uint64_t transparent = number_after(text, "AnonHugePages");
  const uint64_t reserved = number_after(text, "Private_Hugetlb");
  if (transparent != kNoNumber) sum.transparent = transparent << 10;
  if (reserved != kNoNumber) sum.reserved = reserved << 10;
  return sum;
}

}  // namespace hummock::os
