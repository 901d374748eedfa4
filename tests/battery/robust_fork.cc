// Processes that fork, from every state.
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>

#include "robust.h"

extern char** environ;

namespace battery {
namespace {

// Threads that allocate and free without pause, until the process ends.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back(work);
    while (rounds_ < count) sched_yield();
  }

 private:
  static inline std::atomic<int> rounds_ = 0;
  static inline auto work = [] {
    static std::atomic<uint64_t> seeds;
    Random random(++seeds);
    void* live[64] = {};
    for (;; ++rounds_) {
      for (int i = 0; i < 1000; ++i) {
        void*& it = live[random.below(64)];
        call::free(it);
        it = call::malloc(random.between(1, i % 50 == 0 ? 40 * KiB : 1000));
        if (it == nullptr) end(kFailed, "a thread has no memory");
      }
    }
  };
  std::deque<Thread> threads_;
};

void little_work(uint64_t seed) {
  Random random(seed);
  char* live[50];
  for (char*& block : live) block = filled(random.between(1, 2000), 'l');
  for (char* block : live) call::free(block);
}

void reap(const char* what) {
  int status = 0;
  CHECK(wait(&status) > 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kPassed)
    end(kFailed, "%s: a child ended with %#x", what, status);
}

// `most` children live at once; each does a little work and ends.
void fork_often(int count, int most) {
  for (int i = 0; i < count; ++i) {
    const int child = fork();
    if (child < 0) end(kFailed, "fork: %s", strerror(errno));
    if (child == 0) {
      little_work(static_cast<uint64_t>(i));
      _exit(kPassed);
    }
    little_work(static_cast<uint64_t>(i));
    if (i >= most) reap("fork");
  }
  for (int i = 0; i < most; ++i) reap("fork");
}

void busy_parent() {
  static BusyThreads busy(8);
  // Checked, a child has its records to copy, too: a tenth as many.
  fork_often(getenv("HUMMOCK_CHECKED") != nullptr ? 1000 : 10000, 8);
  _exit(kPassed);
}

void quiet_parent() {
  void* before[100];
  for (void*& block : before) block = filled(5000, 'q');
  fork_often(2000, 4);
  for (void* block : before) {
    check_filled(block, 5000, 'q');
    call::free(block);
  }
}

// The child frees what the parent's threads allocated, allocates, and starts threads of its own.
void child_starts_threads() {
  static char* blocks[200];
  on_thread([] {
    for (char*& block : blocks) block = filled(300, 'b');
  });
  static BusyThreads busy(4);
  for (int i = 0; i < 100; ++i) {
    const int child = fork();
    if (child == 0) {
      for (char* block : blocks) {
        check_filled(block, 300, 'b');
        call::free(block);
      }
      for (int t = 0; t < 3; ++t) on_thread([] { exercise(1); });
      exercise(2);
      malloc_trim(0);
      exit(kPassed);
    }
    expect_success(child, "child with threads");
  }
  _exit(kPassed);
}

// ---- In signal handlers ------------------------------------------------------------------------------

std::atomic<int> forked;

void fork_and_wait(int) {
  const int saved = errno;
  const int child = fork();
  if (child == 0) _exit(kPassed);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) end(kFailed, "the handler's child ended with %#x", status);
  ++forked;
  errno = saved;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(number, &action, nullptr) == 0);
}

// A timer interrupts allocation at any point; fork was async-signal-safe until POSIX 2024.
void in_handler() {
  handle(SIGALRM, fork_and_wait);
  const struct itimerval often = {{0, 2000}, {0, 2000}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (uint64_t seed = 0; forked < 300; ++seed) exercise(seed, 100);
}

// The same in a process whose other threads allocate; the one that forks does not when it is hit.
void in_handler_with_threads() {
  handle(SIGUSR1, fork_and_wait);
  static BusyThreads busy(4);
  for (int i = 0; i < 200; ++i) {
    raise(SIGUSR1);
    exercise(static_cast<uint64_t>(i), 20);
  }
  CHECK(forked == 200);
  _exit(kPassed);
}

// ---- Generations ---------------------------------------------------------------------------------------

void generation(int left, const char* inherited) {
  check_filled(inherited, 1000, 'g');
  exercise(static_cast<uint64_t>(left), 50);
  if (left == 0) return;
  on_thread([] { exercise(3, 20); });
  const int child = fork();
  if (child == 0) {
    generation(left - 1, filled(1000, 'g'));
    _exit(kPassed);
  }
  expect_success(child, "generation");
}

void chain() {
  generation(100, filled(1000, 'g'));
}

void tree() {
  for (int i = 0; i < 6; ++i) {
    const int child = fork();
    CHECK(child >= 0);
    exercise(static_cast<uint64_t>(i), 50);
    if (child != 0) expect_success(child, "branch");
  }
}

// ---- With stdio, and other ways --------------------------------------------------------------------------

void with_stdio() {
  static BusyThreads busy(3);
  for (int i = 0; i < 100; ++i) {
    FILE* file = tmpfile();
    CHECK(file != nullptr);
    fprintf(file, "line %d\n", i);
    const int child = fork();
    if (child == 0) {
      fprintf(file, "the child's line\n");
      char* text = nullptr;
      CHECK(asprintf(&text, "%d and %s", i, "words") > 0);
      call::free(text);
      fclose(file);
      exit(kPassed);
    }
    expect_success(child, "stdio");
    fclose(file);
  }
  FILE* pipe = popen("echo from the shell", "r");
  char line[64] = {};
  CHECK(pipe != nullptr && fgets(line, sizeof(line), pipe) != nullptr &&
        strcmp(line, "from the shell\n") == 0);
  CHECK(pclose(pipe) == 0);
  CHECK(system("true") == 0);
  _exit(kPassed);
}

void spawned() {
  static BusyThreads busy(4);
  char path[] = "/bin/true";
  char* const list[] = {path, nullptr};
  for (int i = 0; i < 100; ++i) {
    int child = -1;
    CHECK(posix_spawn(&child, path, nullptr, nullptr, list, environ) == 0);
    expect_success(child, "posix_spawn");
  }
  _exit(kPassed);
}

void vforked() {
  static BusyThreads busy(2);
  for (int i = 0; i < 100; ++i) {
    const int child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(kFailed);
    }
    expect_success(child, "vfork");
  }
  _exit(kPassed);
}

// Forks from several threads at once.
void by_many_threads() {
  auto work = [] {
    for (int i = 0; i < 100; ++i) {
      const int child = fork();
      if (child == 0) {
        little_work(5);
        _exit(kPassed);
      }
      little_work(6);
      expect_success(child, "fork by a thread");
    }
  };
  std::deque<Thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (Thread& thread : threads) thread.join();
}

constexpr char kFamily[] = "fork";

constexpr Case kCases[] = {
    {.name = "fork_10000_busy",
     .family = kFamily,
     .what = "10,000 times (1,000 in checked mode) while eight threads allocate",
     .run = busy_parent,
     .timeout = 1500},
    {.name = "fork_quiet", .family = kFamily, .what = "2,000 times from one thread", .run = quiet_parent},
    {.name = "fork_child_threads",
     .family = kFamily,
     .what = "children free inherited blocks and start threads",
     .run = child_starts_threads},
    {.name = "fork_in_handler",
     .family = kFamily,
     .what = "in a signal handler that interrupts allocation",
     .run = in_handler},
    {.name = "fork_in_handler_threads",
     .family = kFamily,
     .what = "in a handler while other threads allocate",
     .run = in_handler_with_threads},
    {.name = "fork_chain", .family = kFamily, .what = "each child forks the next, 100 deep", .run = chain},
    {.name = "fork_tree", .family = kFamily, .what = "parent and child both go on forking", .run = tree},
    {.name = "fork_by_threads", .family = kFamily, .what = "by four threads at once", .run = by_many_threads},
    {.name = "fork_stdio", .family = kFamily, .what = "with open files, popen, system", .run = with_stdio},
    {.name = "fork_posix_spawn",
     .family = kFamily,
     .what = "posix_spawn while others allocate",
     .run = spawned},
    {.name = "fork_vfork", .family = kFamily, .what = "vfork and exec while others allocate", .run = vforked},
};

}  // namespace

const Cases fork_cases{kCases};

}  // namespace battery
