// What writes and reads for the allocator: no cancellation point, no descriptor left open, no end by a pipe
// that nobody reads, no errno of its own where the program asked for memory.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void require(bool held, const char* what) {
  if (held) return;
  fprintf(stdout, "FAILED: %s\n", what);
  fflush(stdout);
  _exit(1);
}

int open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  require(folder != nullptr, "/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

FILE* nowhere;
bool came_through;

void* cancelled_before(void*) {
  pthread_cancel(pthread_self());
  malloc_stats();
  mallinfo2();
  malloc_info(0, nowhere);
  malloc_trim(0);
  came_through = true;
  pthread_testcancel();
  return nullptr;
}

void* cancelled_meanwhile(void* forever) {
  do {
    malloc_stats();
    pthread_testcancel();
  } while (forever != nullptr);
  return nullptr;
}

// In a child: whatever it leaves open or closed is its own. standard error goes nowhere, or to `fd`.
template <class Act>
void in_child(const char* what, int fd, Act act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    dup2(fd, 2);
    act();
    _exit(0);
  }
  int status = -1;
  require(waitpid(child, &status, 0) == child, "waitpid");
  if (status != 0) fprintf(stdout, "the child ended with %#x\n", static_cast<unsigned>(status));
  require(status == 0, what);
}

void cancel_at_call() {
  pthread_t thread;
  require(pthread_create(&thread, nullptr, cancelled_before, nullptr) == 0, "a thread");
  void* end = nullptr;
  pthread_join(thread, &end);
  require(came_through && end == PTHREAD_CANCELED, "statistics are no cancellation point");
}

void cancel_meanwhile() {
  cancelled_meanwhile(nullptr);
  const int before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    require(pthread_create(&thread, nullptr, cancelled_meanwhile, nowhere) == 0, "a thread");
    usleep(static_cast<useconds_t>(i * 5));
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  require(open_descriptors() == before, "who is cancelled leaves no descriptor open");
}

volatile sig_atomic_t signals;

void write_to_nobody() {
  malloc_stats();
  sigset_t pending;
  sigpending(&pending);
  require(sigismember(&pending, SIGPIPE) == 0, "no SIGPIPE is left");
  signal(SIGPIPE, [](int) { signals = signals + 1; });
  malloc_stats();
  require(signals == 0, "the program's handler hears nothing of it");
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  raise(SIGPIPE);
  malloc_stats();
  sigpending(&pending);
  require(sigismember(&pending, SIGPIPE) == 1, "the program's own signal still waits");
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  require(signals == 1, "and comes once");
}

void leave_errno() {
  void* block = &block;
  errno = 0;
  require(posix_memalign(&block, 64, PTRDIFF_MAX) == ENOMEM && block == &block, "no such block");
  require(errno == ENOMEM, "posix_memalign sets errno, too");
  errno = 12345;
  require(posix_memalign(&block, 64, 100) == 0 && errno == 12345, "but not when there is memory");
  free(block);
  malloc_stats();
  require(errno == 12345, "malloc_stats leaves errno alone");
}

}  // namespace

int main() {
  const int null = open("/dev/null", O_WRONLY);
  nowhere = fdopen(dup(null), "w");
  setvbuf(nowhere, nullptr, _IONBF, 0);  // each piece is written at once
  in_child("cancelled at the call", null, cancel_at_call);
  in_child("cancelled meanwhile", null, cancel_meanwhile);
  in_child("errno", null, leave_errno);
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  close(ends[0]);
  in_child("a pipe without a reader", ends[1], write_to_nobody);
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  close(ends[0]);
  in_child("a socket without a reader", ends[1], write_to_nobody);
  puts("ok");
}
