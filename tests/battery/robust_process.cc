// The life of a process: errno, descriptors, before main, after exit, threads' ends, odd stacks.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "robust.h"

namespace battery {
namespace {

// ---- errno, descriptors ---------------------------------------------------------------------------

void free_keeps_errno() {
  for (size_t size : {size_t{16}, size_t{1000}, 20 * KiB, 300 * KiB, 5 * MiB, 40 * MiB}) {
    for (int i = 0; i < 20; ++i) {
      void* here = filled(size, 'e');
      void* there = filled(size, 'e');
      errno = 4321;
      call::free(here);
      CHECK(errno == 4321);
      on_thread([there] {
        errno = 4322;
        call::free(there);
        CHECK(errno == 4322);
      });
    }
  }
  errno = 4323;
  call::free(nullptr);
  CHECK(errno == 4323);
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

void no_descriptor_leaked() {
  const int before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    exercise(static_cast<uint64_t>(i));
    on_thread([] { exercise(7); });
    call::free(filled(40 * MiB, 'd'));
    malloc_trim(0);
  }
  CHECK(open_descriptors() == before);
}

void standard_descriptors_closed() {
  if (getenv("BATTERY_AGAIN") == nullptr) {
    setenv("BATTERY_AGAIN", "1", 1);
    for (int fd : {0, 1, 2}) close(fd);
    run_again("standard_descriptors_closed");
    _exit(kFailed);
  }
  for (int fd : {0, 1, 2}) CHECK(fcntl(fd, F_GETFD) < 0);
  exercise(1);
  on_thread([] { exercise(2); });
  malloc_trim(0);
  for (int fd : {0, 1, 2}) CHECK(fcntl(fd, F_GETFD) < 0);
}

// ---- Before main, after exit ------------------------------------------------------------------------

char* from_preinit;
char* from_constructor;

// Blocks of `size` without an end of the process where there is none: other cases run under limits.
char* early(size_t size, int value) {
  char* block = static_cast<char*>(call::malloc(size));
  return block == nullptr ? nullptr : static_cast<char*>(memset(block, value, size));
}

void in_preinit() {
  from_preinit = early(5000, 'i');
}
__attribute__((section(".preinit_array"), used)) void (*preinit)() = in_preinit;
__attribute__((constructor(101))) void in_constructor() {
  from_constructor = early(300, 'c');
}

void before_main() {
  CHECK(from_preinit != nullptr && from_constructor != nullptr);
  check_filled(from_preinit, 5000, 'i');
  check_filled(from_constructor, 300, 'c');
  call::free(from_preinit);
  from_constructor = static_cast<char*>(call::realloc(from_constructor, 30000));
  check_filled(from_constructor, 300, 'c');
  call::free(from_constructor);
}

bool watch_exit;

struct UsesMemoryLate {
  ~UsesMemoryLate() {
    if (!watch_exit) return;
    exercise(3);
    on_thread([] { exercise(4); });
  }
} late;

__attribute__((destructor(101))) void in_destructor() {
  if (watch_exit) exercise(5);
}

void after_exit_began() {
  watch_exit = true;
  static char* block = filled(400, 'x');
  atexit([] {
    check_filled(block, 400, 'x');
    call::free(block);
    exercise(6);
  });
  on_thread([] { exercise(1); });
  exit(kPassed);
}

// ---- The ends of threads ------------------------------------------------------------------------------

struct AtThreadEnd {
  char* block = filled(3000, 't');
  ~AtThreadEnd() {
    check_filled(block, 3000, 't');
    call::free(block);
    exercise(8, 50);
  }
};
thread_local AtThreadEnd at_thread_end;

void thread_local_destructors() {
  for (int i = 0; i < 200; ++i) {
    on_thread([] {
      exercise(9, 20);
      CHECK(at_thread_end.block != nullptr);
    });
  }
}

pthread_key_t keys[8];

// Sets its key again as often as libc allows (4 rounds), so that some run after everybody else's.
void key_destructor(void* value) {
  char* block = static_cast<char*>(value);
  check_filled(block + 1, 99, 'k');
  const int round = block[0];
  call::free(block);
  exercise(static_cast<uint64_t>(round), 30);
  if (round == 3) return;
  char* next = filled(100, 'k');
  next[0] = static_cast<char>(round + 1);
  pthread_setspecific(keys[round], next);
}

void key_destructors() {
  for (pthread_key_t& key : keys) CHECK(pthread_key_create(&key, key_destructor) == 0);
  for (int i = 0; i < 100; ++i) {
    on_thread([] {
      for (pthread_key_t key : keys) {
        char* block = filled(100, 'k');
        block[0] = 0;
        pthread_setspecific(key, block);
      }
    });
  }
}

// Frees and allocations of a thread that used no memory before its destructors ran.
void first_use_in_destructor() {
  static pthread_key_t key;
  CHECK(pthread_key_create(&key, [](void*) { exercise(10, 100); }) == 0);
  const size_t before = resident();
  for (int i = 0; i < 2000; ++i) on_thread([] { pthread_setspecific(key, &key); });
  check_resident(before, 16 * MiB, "after 2,000 threads");
}

void cancelled_threads() {
  for (int i = 0; i < 200; ++i) {
    static std::atomic<bool> running;
    running = false;
    auto work = [] {
      char* block = filled(2000, 'c');
      pthread_cleanup_push(call::free, block);
      for (;;) {
        running = true;
        exercise(11, 20);
        pthread_testcancel();
      }
      pthread_cleanup_pop(1);
    };
    Thread thread(work);
    while (!running) sched_yield();
    pthread_cancel(thread.id());
    thread.join();
  }
  exercise(12);
}

// ---- Odd stacks -----------------------------------------------------------------------------------------

void small_stacks() {
  for (int i = 0; i < 20; ++i) {
    on_thread(
        [] {
          exercise(13, 100);
          call::free(filled(40 * MiB, 's'));
          call::free(call::realloc(filled(300 * KiB, 's'), 3 * MiB));
          malloc_trim(0);
        },
        64 * KiB);
  }
}

ucontext_t main_context, contexts[2];
char* handed_on;

template <int kNumber>
void coroutine() {
  for (int i = 0; i < 200; ++i) {
    char* mine = filled(700, 'u');
    call::free(handed_on);
    handed_on = filled(90, 'h');
    swapcontext(&contexts[kNumber], &main_context);
    check_filled(mine, 700, 'u');
    call::free(mine);
  }
}

void context_switches() {
  static char stacks[2][64 * KiB];
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack = {stacks[i], 0, sizeof(stacks[i])};
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], i == 0 ? coroutine<0> : coroutine<1>, 0);
  }
  for (int i = 0; i < 300; ++i) {
    swapcontext(&main_context, &contexts[i % 2]);
    exercise(14, 10);
  }
}

// A handler on a stack of its own, interrupting allocation at any point, without allocating itself.
void signals_on_other_stack() {
  static char stack[64 * KiB];
  static std::atomic<int> hits;
  const stack_t other = {stack, 0, sizeof(stack)};
  CHECK(sigaltstack(&other, nullptr) == 0);
  struct sigaction action = {};
  action.sa_handler = [](int) { ++hits; };
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  const struct itimerval often = {{0, 200}, {0, 200}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (uint64_t i = 0; hits < 500; ++i) exercise(i, 100);
}

constexpr char kFamily[] = "process";

constexpr Case kCases[] = {
    {"free_keeps_errno", kFamily, "of every size, by its thread and by others", free_keeps_errno},
    {"no_descriptor_leaked", kFamily, "as many are open after work as before", no_descriptor_leaked},
    {"standard_descriptors_closed", kFamily, "0, 1 and 2 are closed at start and stay so",
     standard_descriptors_closed},
    {"before_main", kFamily, "blocks from before constructors ran", before_main},
    {"after_exit_began", kFamily, "atexit, static destructors, destructor functions", after_exit_began},
    {"thread_local_destructors", kFamily, "allocate and free", thread_local_destructors},
    {"key_destructors", kFamily, "pthread keys whose destructors allocate, in four rounds", key_destructors},
    {"first_use_in_destructor", kFamily, "a thread that first allocates at its end", first_use_in_destructor},
    {"cancelled_threads", kFamily, "threads cancelled in the midst of work", cancelled_threads},
    {"small_stacks", kFamily, "everything on stacks of 64 KiB", small_stacks},
    {"context_switches", kFamily, "ucontext coroutines that free each other's blocks", context_switches},
    {"signals_on_other_stack", kFamily, "a timer interrupts allocation thousands of times",
     signals_on_other_stack},
};

}  // namespace

const Cases process_cases{kCases};

}  // namespace battery
