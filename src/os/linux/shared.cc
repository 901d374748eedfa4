// Memory that other processes of the user can open.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/linux/files.h"
#include "os/linux/uncancelled.h"
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

// What the system refused once is not tried again: that would be a call more each time. Atomic, relaxed: two
// threads find the same.
bool no_such_seal;
bool descriptors_are_few;

int create(const char* name) {
  if (!__atomic_load_n(&no_such_seal, __ATOMIC_RELAXED)) {
    const long fd = syscall(SYS_memfd_create, name, kClose | kSealing | kNoExecute);
    if (fd >= 0 || errno != EINVAL) return static_cast<int>(fd);
    __atomic_store_n(&no_such_seal, true, __ATOMIC_RELAXED);
  }
  return static_cast<int>(syscall(SYS_memfd_create, name, kClose | kSealing));
}

// Its length is fixed for good: who has it open could else cut it, and end us with SIGBUS.
bool seal(int fd) {
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

void* map(int fd, size_t size) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace

int move_away(int fd) {
  int high = -1;
  if (!__atomic_load_n(&descriptors_are_few, __ATOMIC_RELAXED)) {
    high = fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor);
    if (high < 0) __atomic_store_n(&descriptors_are_few, true, __ATOMIC_RELAXED);
  }
  if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, kNearDescriptor);
  if (high < 0) return fd;
  close(fd);
  return high;
}

void* map_shared(const char* name, size_t size) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  void* mapped = nullptr;
  const int fd = create(name);
  if (fd >= 0) {
    if (set_file_length(fd, size) == 0 && seal(fd)) mapped = map(fd, size);
    mapped == nullptr ? close(fd) : move_away(fd);
  }
  return mapped;
}

namespace {

enum Step : unsigned { kBegin, kCreate, kSetLength, kMap, kLeave, kDone };

bool has_room_for(size_t size) {
  rlimit most;
  return getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= size;
}

// The program may have closed the descriptor between two steps, and have another file there.
bool is_ours(const SharedInSteps& so_far) {
  return file_identity(so_far.fd) == so_far.identity;
}

unsigned next_step(SharedInSteps* so_far, const char* name, size_t size) {
  switch (so_far->step) {
    case kBegin:  // asked for here, as a limit that says no in kSetLength costs a call too many
      so_far->process = process_id();
      return has_room_for(size) ? kCreate : kDone;
    case kCreate:
      so_far->fd = create(name);
      if (so_far->fd < 0) return kDone;
      so_far->fd = move_away(so_far->fd);
      so_far->identity = file_identity(so_far->fd);
      return kSetLength;
    case kSetLength:
      if (!is_ours(*so_far)) return kDone;
      return set_file_length(so_far->fd, size) == 0 ? kMap : kLeave;
    case kMap:  // not in a child that came without handlers of fork, as of vfork
      if (process_id() != so_far->process || !is_ours(*so_far)) return kDone;
      if (seal(so_far->fd)) so_far->memory = map(so_far->fd, size);
      return so_far->memory != nullptr ? kDone : kLeave;
    case kLeave:
      if (is_ours(*so_far)) close(so_far->fd);
      [[fallthrough]];
    default:
      return kDone;
  }
}

}  // namespace

bool map_shared_some(SharedInSteps* so_far, const char* name, size_t size) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  so_far->step = next_step(so_far, name, size);
  return so_far->step == kDone;
}

void forget_shared(SharedInSteps* so_far) {
  const base::KeepErrno keep;
  if (so_far->step > kCreate && so_far->step < kDone && is_ours(*so_far)) close(so_far->fd);
  *so_far = {};
}

void program_name(char* out, size_t room) {
  out[read_value("/proc/self/comm", out, room)] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

unsigned thread_id() {
  return static_cast<unsigned>(syscall(SYS_gettid));
}

}  // namespace hummock::os
