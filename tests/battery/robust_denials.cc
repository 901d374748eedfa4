// System calls that are denied, later on or from the start; no /proc.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "robust.h"

namespace battery {
namespace {

// ---- Filters ------------------------------------------------------------------------------------

constexpr unsigned kNumber = offsetof(seccomp_data, nr);
constexpr unsigned kSecondLow = offsetof(seccomp_data, args[1]);
constexpr unsigned kSecondHigh = offsetof(seccomp_data, args[1]) + 4;
constexpr unsigned kDeny = SECCOMP_RET_ERRNO | ENOMEM;

void install(const sock_filter* rules, size_t count) {
  const sock_fprog program = {static_cast<unsigned short>(count), const_cast<sock_filter*>(rules)};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    end(kSkipped, "skipped: no seccomp: %s", strerror(errno));
  }
}

void deny(unsigned call_number) {
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call_number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kDeny),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install(rules, sizeof(rules) / sizeof(rules[0]));
}

// mmap of `size` or more without a file. What the loader needs before main is smaller.
void deny_anonymous_from(unsigned size) {
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecondHigh),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecondLow),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, size, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kDeny),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install(rules, sizeof(rules) / sizeof(rules[0]));
}

// ---- What has to hold under them ------------------------------------------------------------------

// Allocation may fail but only rightly; what is live stays.
void use_what_there_is() {
  constexpr size_t kSizes[] = {16, 1000, 20 * KiB, 300 * KiB, 3 * MiB, 40 * MiB};
  char* p[60];
  for (int i = 0; i < 60; ++i) {
    const size_t size = kSizes[i % 6];
    errno = 0;
    p[i] = static_cast<char*>(i % 2 == 0 ? call::malloc(size) : call::calloc(1, size));
    CHECK(p[i] != nullptr || errno == ENOMEM);
    if (p[i] != nullptr) memset(p[i], i, size);
  }
  for (int i = 0; i < 60; ++i) {
    if (p[i] == nullptr) continue;
    const size_t size = kSizes[i % 6];
    check_filled(p[i], size, i);
    errno = 0;
    char* q = static_cast<char*>(call::realloc(p[i], i % 3 == 0 ? size / 3 + 1 : size * 3));
    CHECK(q != nullptr || errno == ENOMEM);
    if (q != nullptr) p[i] = q;
    check_filled(p[i], size / 3, i);
    errno = 77;
    call::free(p[i]);
    CHECK(errno == 77);
  }
  malloc_trim(0);
}

// Warms up, denies, and checks that the blocks of before stay as they were and can be freed.
template <class Deny>
void later(Deny deny_now, bool must_work) {
  constexpr size_t kSizes[] = {64, 5000, 100 * KiB, 2 * MiB, 40 * MiB};
  exercise(1);
  char* p[5];
  for (int i = 0; i < 5; ++i) p[i] = filled(kSizes[i], i);
  deny_now();
  use_what_there_is();
  if (must_work) exercise(2);
  for (int i = 0; i < 5; ++i) {
    check_filled(p[i], kSizes[i], i);
    errno = 77;
    call::free(p[i]);
    CHECK(errno == 77);
  }
  use_what_there_is();
  for (int i = 0; i < 5000; ++i) {
    char* again = static_cast<char*>(call::malloc(64));
    if (again != nullptr) memset(again, 'a', 64);
    call::free(again);
  }
}

void mmap_later() {
  later([] { deny(__NR_mmap); }, false);
}
void munmap_later() {
  later([] { deny(__NR_munmap); }, true);
}
void mremap_later() {
  later([] { deny(__NR_mremap); }, true);
}
void madvise_later() {
  later([] { deny(__NR_madvise); }, true);
}
void mprotect_later() {
  later([] { deny(__NR_mprotect); }, false);
}
void all_later() {
  later(
      [] {
        for (unsigned number : {__NR_mmap, __NR_munmap, __NR_mremap, __NR_madvise, __NR_mprotect, __NR_brk}) {
          deny(number);
        }
      },
      false);
}

// What was live when mmap was denied, once freed, must serve new blocks of its size.
void reuse_without_mmap() {
  static char* p[2000];
  for (size_t size : {64, 3000, 50000}) {
    for (int i = 0; i < 500; ++i) p[i] = filled(size, 'r');
    for (int i = 0; i < 500; ++i) call::free(p[i]);
  }
  deny(__NR_mmap);
  if (!has_ceilings()) return use_what_there_is();
  for (size_t size : {64, 3000, 50000}) {
    for (int i = 0; i < 400; ++i) p[i] = filled(size, 'r');
    for (int i = 0; i < 400; ++i) call::free(p[i]);
  }
}

// ---- From the start ---------------------------------------------------------------------------------

template <class Deny>
void from_start(const char* name, Deny deny_now, bool must_work) {
  if (getenv("BATTERY_AGAIN") == nullptr) {
    setenv("BATTERY_AGAIN", "1", 1);
    deny_now();
    run_again(name);
    end(kFailed, "cannot run again: %s", strerror(errno));
  }
  use_what_there_is();
  if (!must_work) return;
  exercise(3);
  on_thread([] { exercise(4); });
}

void mmap_from_start() {
  from_start(
      "mmap_denied_from_start", [] { deny_anonymous_from(256 * KiB); }, false);
}
void large_mmap_from_start() {
  from_start(
      "large_mmap_denied_from_start", [] { deny_anonymous_from(48 * MiB); }, true);
}
void munmap_from_start() {
  from_start(
      "munmap_denied_from_start", [] { deny(__NR_munmap); }, true);
}
void madvise_from_start() {
  from_start(
      "madvise_denied_from_start", [] { deny(__NR_madvise); }, true);
}
void mremap_from_start() {
  from_start(
      "mremap_denied_from_start", [] { deny(__NR_mremap); }, true);
}
void rare_calls_from_start() {
  from_start(
      "rare_calls_denied_from_start",
      [] {
        for (unsigned number : {__NR_rseq, __NR_membarrier, __NR_sched_getaffinity, __NR_getcpu, __NR_prctl,
                                __NR_getrandom, __NR_sysinfo, __NR_prlimit64}) {
          if (number != __NR_prctl) deny(number);
        }
        deny(__NR_prctl);
      },
      true);
}

// ---- No /proc -----------------------------------------------------------------------------------------

void no_proc() {
  if (getenv("BATTERY_AGAIN") == nullptr) {
    setenv("BATTERY_AGAIN", "1", 1);
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      end(kSkipped, "skipped: no mount namespace: %s", strerror(errno));
    }
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      end(kSkipped, "skipped: cannot cover /proc: %s", strerror(errno));
    }
    if (umount2("/sys", MNT_DETACH) != 0) dprintf(STDERR_FILENO, "note: /sys is still there\n");
    run_again("no_proc");
    end(kFailed, "cannot run again: %s", strerror(errno));
  }
  CHECK(access("/proc/self/maps", F_OK) != 0);
  exercise(5);
  for (int i = 0; i < 10; ++i) on_thread([] { exercise(6); });
  call::free(filled(300 * MiB, 'p'));
  malloc_trim(0);
  exercise(7);
}

constexpr char kFamily[] = "denials";

constexpr Case kCases[] = {
    {"mmap_denied", kFamily, "mmap fails from now on", mmap_later},
    {"munmap_denied", kFamily, "munmap fails from now on", munmap_later},
    {"mremap_denied", kFamily, "mremap fails from now on", mremap_later},
    {"madvise_denied", kFamily, "madvise fails from now on", madvise_later},
    {"mprotect_denied", kFamily, "mprotect fails from now on", mprotect_later},
    {"memory_calls_denied", kFamily, "all of them and brk fail from now on", all_later},
    {"reuse_without_mmap", kFamily, "freed blocks serve new ones when mmap fails", reuse_without_mmap},
    {"mmap_denied_from_start", kFamily, "no mapping of 256 KiB or more, ever", mmap_from_start},
    {"large_mmap_denied_from_start", kFamily, "no mapping of 48 MiB or more, ever", large_mmap_from_start},
    {"munmap_denied_from_start", kFamily, "munmap never works", munmap_from_start},
    {"madvise_denied_from_start", kFamily, "madvise never works", madvise_from_start},
    {"mremap_denied_from_start", kFamily, "mremap never works", mremap_from_start},
    {"rare_calls_denied_from_start", kFamily, "rseq, membarrier, getcpu, getrandom … never work",
     rare_calls_from_start},
    {"no_proc", kFamily, "nothing is in /proc and /sys", no_proc},
};

}  // namespace

const Cases denial_cases{kCases};

}  // namespace battery
