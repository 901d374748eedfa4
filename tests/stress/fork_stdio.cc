// Forks from a process whose threads are in stdio: they open and flush streams, all of them too, and allocate
// while they hold one. fork() waits for the list of streams. No hang, in the parent or in a child.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "stress/stress.h"

namespace {

// A fork under the emulator takes as long as fifty elsewhere.
constexpr size_t kSlower = HUMMOCK_TEST_EMULATED ? 50 : 1;

constexpr size_t kThreads = 4;
std::atomic<bool> stop{false};

// libc's own blocks are not the prefixed library's: what a stream's holder allocates there is told by a
// stream of our own.
ssize_t allocate_inside(void*, const char*, size_t size) {
  void* block = memory::get(size % 5000 + 1);
  memory::give(block);
  return static_cast<ssize_t>(size);
}

void use_streams(size_t self) {
  support::Random random(support::run_seed() + self);
  while (!stop.load(std::memory_order_relaxed)) {
    FILE* own = fopencookie(nullptr, "w", {nullptr, allocate_inside, nullptr, nullptr});
    FILE* plain = fopen("/dev/null", "w");
    stress::require(own != nullptr && plain != nullptr, "streams");
    for (int i = 0; i < 20; ++i) {
      fprintf(own, "%d %0*d\n", i, static_cast<int>(random.below(300)) + 1, i);
      fprintf(plain, "%d %f\n", i, 0.5 * i);
    }
    fflush(nullptr);
    fclose(own);
    fclose(plain);
    char* text = nullptr;
    size_t length = 0;
    FILE* memory = open_memstream(&text, &length);
    for (int i = 0; i < 50; ++i) fprintf(memory, "%0*d", 100, i);
    fclose(memory);
    free(text);
  }
}

void live_as_child(uint64_t seed) {
  alarm(120);
  support::Random random(seed);
  for (size_t i = 0; i < 20; ++i) stress::finish(stress::fresh(random, i == 0 ? 300000 : 2000));
  FILE* file = fopen("/dev/null", "w");
  fprintf(file, "%d", 1);
  fflush(nullptr);
  fclose(file);
}

// From here on this thread's forks fail, which call clone; threads are made by clone3, and there are enough.
bool refuse_forks() {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EAGAIN},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// All locks must be free after it, for this thread and the others.
void fail_to_fork() {
  if (!refuse_forks()) return;  // an emulator's kernel may not know how
  support::Random random(support::run_seed());
  for (size_t i = 0, forks = support::scaled(1000 / kSlower, 20); i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    stress::require(child < 0, "a refused fork fails");
    stress::finish(stress::fresh(random, 300000));
    fflush(nullptr);
  }
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::run_seed();  // before there are threads, and children
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) crew.emplace_back(use_streams, t);
  for (size_t i = 0, forks = support::scaled(10000 / kSlower, 20); i < forks; ++i) {
    const pid_t child = fork();
    stress::require(child >= 0, "fork");
    if (child == 0) {
      live_as_child(support::run_seed() + i);
      _exit(0);
    }
    int status = -1;
    stress::require(waitpid(child, &status, 0) == child && status == 0, "the child uses stdio and memory");
  }
  fail_to_fork();
  stop = true;
  for (std::thread& thread : crew) thread.join();
}
