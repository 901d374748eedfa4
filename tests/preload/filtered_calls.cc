// A program that lets itself make no system calls but those which docs/running.md names. The options that the
// test sets leave no others.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

namespace {

constexpr unsigned kAllowed[] = {
    // Hummock's
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex, SYS_gettid,
    // the C library's, for threads and their ends
    SYS_clone3, SYS_clone, SYS_set_robust_list, SYS_rseq, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_exit,
    SYS_exit_group};

// False: the system has no filters.
bool allow_only_those() {
  constexpr auto kCount = static_cast<unsigned>(std::size(kAllowed));
  sock_filter program[kCount + 3];
  program[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (unsigned i = 0; i < kCount; ++i) {
    program[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAllowed[i], static_cast<__u8>(kCount - i), 0);
  }
  program[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  program[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter = {kCount + 3, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// 200 MiB, so that all that a large heap brings with it happens.
void* fill(void*) {
  static constexpr size_t kSizes[] = {16, 500, 8000, 50000, 300000, 3 << 20};
  for (const size_t size : kSizes) {
    const size_t count = (size_t{100} << 20) / size / (size < 500 ? 10 : 1);
    auto** blocks = static_cast<char**>(malloc(count * sizeof(char*)));
    for (size_t i = 0; i < count; ++i) memset(blocks[i] = static_cast<char*>(malloc(size)), 1, size);
    for (size_t i = 0; i < count; ++i) blocks[i] = static_cast<char*>(realloc(blocks[i], size + size / 2));
    for (size_t i = 0; i < count; ++i) free(blocks[i]);
    free(blocks);
  }
  char* huge = static_cast<char*>(calloc(40, 1 << 20));
  free(realloc(huge, size_t{200} << 20));
  malloc_trim(0);
  return nullptr;
}

int filtered() {
  if (!allow_only_those()) return 77;
  pthread_t threads[2];
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, nullptr, fill, nullptr) != 0) return 1;
  }
  for (pthread_t& thread : threads) pthread_join(thread, nullptr);
  fill(nullptr);
  return 0;
}

}  // namespace

int main() {
  const pid_t child = fork();
  if (child == 0) _exit(filtered());
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
  return 1;
}
