// How much memory the process's control group may have.
#include <string.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/linux/files.h"
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

// Written by who asks, one thread at a time. The first answer takes several steps, in this order.
enum class Step : uint8_t { find, check, above, own };
Step step;
unsigned candidate;          // of kVersions, for `find` and `check`
char folders[2][kPathRoom];  // of the process's own group, by version; empty: it has none
const Version* version;      // whose folder counts
size_t length;               // for `above`: of the part of the folder's path that is looked at
unsigned turn;               // likewise, and for `own`: whose file is looked at next
size_t own[2] = {SIZE_MAX, SIZE_MAX};
unsigned looked;           // at how many files of its own, so far
size_t others = SIZE_MAX;  // the machine's memory, and the limits of the groups that the own one stands in

char* folder_of(const Version& each) {
  return folders[&each - kVersions];
}

// SIZE_MAX: no limit, as "max" and a missing file say.
size_t limit_in(const char* folder, size_t part, const char* file) {
  char path[kPathRoom + 32];
  memcpy(path, folder, part);
  memcpy(path + part, file, strlen(file) + 1);
  const uint64_t number = number_in_file(path, "");
  return number == kNoNumber ? SIZE_MAX : static_cast<size_t>(number);
}

bool exists(const char* path) {
  return access(path, F_OK) == 0;
}

bool is_root(const Version& each) {
  return strlen(folder_of(each)) == strlen(each.root);
}

// "0::/a/b" and "4:memory:/a/b" in /proc/self/cgroup. In a container the path may be that outside of it: then
// the root is the own group. Four system calls.
bool find_folder(const Version& each) {
  char groups[4096];
  if (read_value("/proc/self/cgroup", groups, sizeof groups) == 0) return false;
  const char* found = strstr(groups, each.line);
  if (found == nullptr) return false;
  const char* path = found + strlen(each.line) - 1;
  const size_t root = strlen(each.root), rest = strcspn(path, "\n");
  if (root + rest + 32 > kPathRoom) return false;
  char* folder = folder_of(each);
  memcpy(folder, each.root, root);
  memcpy(folder + root, path, rest);
  folder[root + (rest > 1 ? rest : 0)] = '\0';
  if (!exists(folder)) folder[root] = '\0';
  return true;
}

Step begin_above() {
  others = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  turn = 0;
  if (version == nullptr) return Step::own;
  length = strlen(folder_of(*version));
  return Step::above;
}

// Where both versions are mounted, that which has a limit counts; memory is in one of them.
Step look_for() {
  if (candidate == 2) return begin_above();
  if (find_folder(kVersions[candidate])) return Step::check;
  ++candidate;
  return Step::find;
}

Step check() {
  const Version& each = kVersions[candidate++];
  const char* folder = folder_of(each);
  const size_t limit = limit_in(folder, strlen(folder), each.file[0]);
  if (limit != SIZE_MAX || !is_root(each) || exists(folder)) version = &each;
  return limit != SIZE_MAX ? begin_above() : Step::find;
}

Step look_above() {
  const char* folder = folder_of(*version);
  const size_t root = strlen(version->root);
  if (turn == 0) {
    if (length <= root) return Step::own;
    while (length > root && folder[--length] != '/') {
    }
  }
  const size_t limit = limit_in(folder, length, version->file[turn]);
  if (limit < others) others = limit;
  turn = (turn + 1) % kOwnFiles[version - kVersions];
  return Step::above;
}

void look_at_own() {
  const char* folder = folder_of(*version);
  const unsigned file = looked++ % kOwnFiles[version - kVersions];
  own[file] = limit_in(folder, strlen(folder), version->file[file]);
}

Step next_step() {
  switch (step) {
    case Step::find:
      return look_for();
    case Step::check:
      return check();
    case Step::above:
      return look_above();
    default:
      if (version != nullptr) look_at_own();
      return Step::own;
  }
}

}  // namespace

bool group_limit(size_t* limit) {
  const base::KeepErrno keep;
  step = next_step();
  const bool known = step == Step::own && (version == nullptr || looked >= kOwnFiles[version - kVersions]);
  const size_t least = own[0] < own[1] ? own[0] : own[1];
  *limit = least < others ? least : others;
  return known;
}

}  // namespace hummock::os
