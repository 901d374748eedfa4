// After creation: no system call and no page fault, whatever is allocated and freed.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "space_support.h"

namespace {

using support::Random;
using support::Space;
using support::space_of;

constexpr size_t kMiB = size_t{1} << 20;

// From now on every system call but the end of the process kills it.
bool forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Blocks in a fixed array: the test itself must not call malloc.
constexpr size_t kMost = 4000;
struct Blocks {
  void* at[kMost];
  size_t count = 0;
};
Blocks blocks;

// Every operation of a space, refusals included.
void use(hummock_space_t* space, uint64_t seed, size_t operations, size_t largest) {
  for (void*& place : blocks.at) *const_cast<void* volatile*>(&place) = nullptr;  // the test's own pages
  Random random(seed);
  for (size_t i = 0; i < operations; ++i) {
    if (blocks.count == kMost || (blocks.count != 0 && random.below(5) < 2)) {
      const size_t k = random.below(blocks.count);
      hummock_space_free(space, blocks.at[k]);
      blocks.at[k] = blocks.at[--blocks.count];
      continue;
    }
    const size_t size = random.size_up_to(largest);
    void* p = nullptr;
    switch (random.below(8)) {
      case 0:
        p = hummock_space_memalign(space, size_t{1} << random.below(12), size);
        break;
      case 1:
        p = hummock_space_calloc(space, 1, size);
        break;
      case 2:
        if (blocks.count != 0) {
          p = hummock_space_realloc(space, blocks.at[--blocks.count], size + 1);
          if (p == nullptr) ++blocks.count;
        }
        break;
      case 3:
        p = hummock_space_malloc(space, size_t{1} << 60);
        break;
      default:
        p = hummock_space_malloc(space, size);
    }
    if (p != nullptr) blocks.at[blocks.count++] = p;
    if (i % 100 == 0) {
      hummock_space_stats_t stats = {};
      stats.size = sizeof(stats);
      if (hummock_space_stats(space, &stats) != 0) _exit(3);
      if (blocks.count != 0 && hummock_space_usable_size(space, blocks.at[0]) == 0) _exit(4);
    }
  }
  while (blocks.count != 0) hummock_space_free(space, blocks.at[--blocks.count]);
}

template <class Act>
int status_of(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

constexpr int kKinds = 7;
hummock_space_options_t kind_of(int kind) {
  const uint32_t threads[kKinds] = {HUMMOCK_SPACE_OWNER,   HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_SPIN,
                                    HUMMOCK_SPACE_INHERIT, HUMMOCK_SPACE_SPIN,  HUMMOCK_SPACE_INHERIT,
                                    HUMMOCK_SPACE_OWNER};
  hummock_space_options_t options =
      space_of(32 * kMiB, threads[kind], kind == 1 ? HUMMOCK_SPACE_PROVEN : HUMMOCK_SPACE_DENSE);
  options.populate = HUMMOCK_SPACE_REQUIRE;
  options.cache_blocks = kind >= 4 ? 32 : 0;
  return options;
}

long faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// A fork that lives on, and does nothing, until this ends.
class WaitingChild {
 public:
  WaitingChild() {
    REQUIRE(pipe(ends_) == 0);
    child_ = fork();
    if (child_ != 0) return;
    char byte;
    close(ends_[1]);
    _exit(static_cast<int>(read(ends_[0], &byte, 1)));
  }
  ~WaitingChild() {
    close(ends_[1]);
    close(ends_[0]);
    CHECK(waitpid(child_, nullptr, 0) == child_);
  }

 private:
  int ends_[2];
  pid_t child_;
};

// After a fork each page of the process outside the space faults once more, where it is written first. What
// the test's operations do not write for sure is written here: the stack, as deep as calls may go, and the
// page where the kernel notes the thread's processor when it was interrupted.
__attribute__((noinline)) void touch_own_pages() {
  volatile char room[64 << 10];
  for (size_t i = 0; i < sizeof(room); i += 1024) room[i] = 0;
#ifdef RSEQ_SIG
  auto* area = reinterpret_cast<rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
  __atomic_fetch_or(&area->flags, 0, __ATOMIC_RELAXED);
#endif
}

// A frame of its own, in what touch_own_pages() has touched: its caller's may stand in a page that nobody has
// written since the fork.
__attribute__((noinline)) long faults_in_use(hummock_space_t* space, uint64_t seed) {
  faults();
  const long before = faults();
  use(space, seed, 1000000, 100000);
  return faults() - before;
}

// In a space of its own, before and after a fork.
long faults_beside_fork(const hummock_space_options_t& options) {
  Space space(options);
  touch_own_pages();
  use(space, 1, 10000, 100000);  // pages of the test itself
  const long before = faults_in_use(space, 2);

  // A child that lives on would share all pages, and the parent would fault for each it writes.
  const WaitingChild child;
  touch_own_pages();
  use(space, 3, 10000, 100000);  // of the rest of the process: globals
  return before + faults_in_use(space, 3);
}

}  // namespace

TEST_CASE("no system call after creation, on pain of death") {
#if HUMMOCK_TEST_EMULATED
  return;  // the emulator makes system calls of its own
#endif
  const int control = status_of([] {
    if (!forbid_system_calls()) _exit(77);
    getppid();
  });
  REQUIRE(WIFSIGNALED(control));  // else the filter proves nothing
  CHECK(WTERMSIG(control) == SIGSYS);
  for (int kind = 0; kind < kKinds; ++kind) {
    CAPTURE(kind);
    const int status = status_of([kind] {
      const hummock_space_options_t options = kind_of(kind);
      hummock_space_t* space = hummock_space_create(&options, nullptr);
      if (space == nullptr) _exit(2);
      if (!forbid_system_calls()) _exit(77);
      use(space, 1, 300000, 100000);
      use(space, 2, 30000, 8 * kMiB);
    });
    CHECK(WIFEXITED(status));
    CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == 0);
  }
}

TEST_CASE("no page fault in a million operations, nor after a fork") {
#if HUMMOCK_TEST_EMULATED
  return;  // the emulator's own memory faults
#endif
  struct Kind {
    uint32_t policy, cache;
  };
  for (const Kind kind :
       {Kind{HUMMOCK_SPACE_DENSE, 0}, Kind{HUMMOCK_SPACE_DENSE, 1024}, Kind{HUMMOCK_SPACE_PROVEN, 0}}) {
    hummock_space_options_t options = space_of(64 * kMiB, HUMMOCK_SPACE_OWNER, kind.policy);
    options.populate = HUMMOCK_SPACE_REQUIRE;
    options.no_fork = HUMMOCK_SPACE_REQUIRE;
    options.cache_blocks = kind.cache;
    // A page that the system moves just then is a fault, too. One of ours is there in each new space.
    long least = faults_beside_fork(options);
    for (int tries = 1; tries < 3 && least != 0; ++tries)
      least = std::min(least, faults_beside_fork(options));
    CHECK(least == 0);
  }
}

TEST_CASE("after a fork the very first use of every page of a space that stays out of it is quiet") {
#if HUMMOCK_TEST_EMULATED
  return;
#endif
  long faulted[2];
  for (const uint32_t no_fork : {HUMMOCK_SPACE_OFF, HUMMOCK_SPACE_REQUIRE}) {
    hummock_space_options_t options = space_of(64 * kMiB);
    options.populate = HUMMOCK_SPACE_REQUIRE;
    options.no_fork = no_fork;
    Space space(options);
    const WaitingChild child;
    const long before = faults();
    void* all = hummock_space_malloc_zero(space, 60 * kMiB, 1);
    faulted[no_fork / HUMMOCK_SPACE_REQUIRE] = faults() - before;
    hummock_space_free(space, all);
  }
  MESSAGE("page faults after a fork: ", faulted[0], " with the space in it, ", faulted[1], " without");
  CHECK(faulted[0] > 1000);
  CHECK(faulted[1] < 40);  // the program's own pages: stack, globals, libc
}

TEST_CASE("a fork while other threads are inside: the child's copy works") {
  for (const uint32_t mode : {HUMMOCK_SPACE_SPIN, HUMMOCK_SPACE_INHERIT}) {
    Space space(space_of(4 * kMiB, mode));
    bool done = false;
    std::thread worker([&] {
      while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        hummock_space_free(space, hummock_space_malloc(space, 100));
      }
    });
    for (int i = 0; i < 200; ++i) {
      const int status = status_of([&] {
        alarm(600);
        use(space, 1, 200, 1000);
        if (!support::is_sound(space)) _exit(5);
      });
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&done, true, __ATOMIC_RELAXED);
    worker.join();
    CHECK(support::is_sound(space));
  }
}
