// How much memory the process's control group may have.
#include <string.h>
#include <unistd.h>

#include "os/linux_files.h"
#include "os/os.h"

namespace hummock::os {
namespace {

constexpr size_t kPathRoom = 1024;

struct Version {
  const char* line;  // how the group's line of /proc/self/cgroup begins, behind its number
  const char* root;  // where the tree is mounted
  const char* file[2];
};
constexpr Version kVersions[] = {
    {"::/", "/sys/fs/cgroup", {"/memory.max", "/memory.high"}},
    {":memory:/", "/sys/fs/cgroup/memory", {"/memory.limit_in_bytes", "/memory.soft_limit_in_bytes"}}};
constexpr unsigned kOwnFiles[] = {2, 1};  // a soft limit of version 1 bounds nobody

// Written by the first call, and then by who calls, one at a time.
char folder[kPathRoom];  // of the process's own group; empty: it has none
const Version* version;
size_t own[2] = {SIZE_MAX, SIZE_MAX};
size_t others = SIZE_MAX;  // the machine's memory, and the limits of the groups that the own one stands in
unsigned turn;

// SIZE_MAX: no limit, as "max" and a missing file say.
size_t limit_in(size_t length, const char* file) {
  char path[kPathRoom + 32];
  memcpy(path, folder, length);
  strcpy(path + length, file);
  const uint64_t number = number_in_file(path, "");
  return number == kNoNumber ? SIZE_MAX : static_cast<size_t>(number);
}

bool exists(const char* path) {
  return access(path, F_OK) == 0;
}

// "0::/a/b" and "4:memory:/a/b" in /proc/self/cgroup. In a container the path may be that outside of it: then
// the root is the own group.
bool find_folder(const Version& each, const char* groups) {
  const char* found = strstr(groups, each.line);
  if (found == nullptr) return false;
  const char* path = found + strlen(each.line) - 1;
  const size_t root = strlen(each.root), length = strcspn(path, "\n");
  if (root + length + 32 > sizeof folder) return false;
  memcpy(folder, each.root, root);
  memcpy(folder + root, path, length);
  folder[root + (length > 1 ? length : 0)] = '\0';
  if (!exists(folder)) folder[root] = '\0';
  if (limit_in(strlen(folder), each.file[0]) == SIZE_MAX && length <= 1 && !exists(folder)) return false;
  version = &each;
  return true;
}

void look_above() {
  others = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  if (version == nullptr) return;
  const size_t root = strlen(version->root);
  for (size_t length = strlen(folder); length > root;) {
    while (length > root && folder[--length] != '/') {
    }
    for (unsigned i = 0; i < kOwnFiles[version - kVersions]; ++i) {
      const size_t limit = limit_in(length, version->file[i]);
      if (limit < others) others = limit;
    }
  }
}

void look_at_first() {
  char groups[4096];
  if (read_file("/proc/self/cgroup", groups, sizeof groups) != 0) {
    // Where both versions are mounted, that which has a limit counts; memory is in one of them.
    for (const Version& each : kVersions) {
      if (find_folder(each, groups) && limit_in(strlen(folder), each.file[0]) != SIZE_MAX) break;
    }
  }
  look_above();
}

}  // namespace

size_t group_limit() {
  const bool first = others == SIZE_MAX;
  if (first) look_at_first();
  if (version != nullptr) {
    const unsigned files = kOwnFiles[version - kVersions];
    for (unsigned i = 0; i < (first ? files : 1); ++i) {
      own[turn % files] = limit_in(strlen(folder), version->file[turn % files]);
      ++turn;
    }
  }
  const size_t least = own[0] < own[1] ? own[0] : own[1];
  return least < others ? least : others;
}

}  // namespace hummock::os
