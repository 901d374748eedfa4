// A program that makes calls of known number, and says how many. Its argument says what else it does.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

extern "C" __attribute__((weak)) int hummock_on_bad_pointer(void (*handler)(const char*));
extern "C" __attribute__((weak)) void hummock_free_sized(void* block, size_t size);

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 20000;
constexpr size_t kOdd = 12347;  // no other call has these sizes
constexpr size_t kAligned = 3331;
constexpr size_t kUntouched = 16 << 20;

void* handed[kThreads][kRounds];
pthread_barrier_t barrier;

// Each thread frees what the next one has allocated. Before that it frees one of the last blocks of every
// thread: a replay has no barrier, but waits for a block before it frees it.
void* work(void* number) {
  const auto self = reinterpret_cast<size_t>(number);
  for (int i = 0; i < kRounds; ++i) handed[self][i] = malloc(static_cast<size_t>(16 + i % 500));
  pthread_barrier_wait(&barrier);
  for (const auto& blocks : handed) free(blocks[kRounds - 1 - self]);
  for (int i = 0; i < kRounds - kThreads; ++i) free(handed[(self + 1) % kThreads][i]);
  return nullptr;
}

void one_of_each() {
  void* block = calloc(3, kOdd);
  block = realloc(block, kOdd);
  block = realloc(block, 40 * kOdd);
  free(block);
  if (posix_memalign(&block, 4096, kAligned) == 0) free(block);
  operator delete(operator new(kOdd));
  operator delete(operator new(kOdd), kOdd);
  operator delete[](operator new[](kOdd, std::align_val_t{256}), kOdd, std::align_val_t{256});
}

void in_threads() {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, nullptr, kThreads);
  for (size_t i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], nullptr, work, reinterpret_cast<void*>(i));
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

// Its calls are nobody's.
void fork_and_allocate() {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 1000; ++i) free(malloc(kOdd));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

jmp_buf back;
void go_back(const char*) {
  longjmp(back, 1);
}

// What the handler leaves is no call, and the calls after it are.
void allocate_after_misuse() {
  static char wrong[64];
  void* volatile block = wrong;
  hummock_on_bad_pointer(go_back);
  if (setjmp(back) == 0) free(realloc(block, kOdd));
  if (setjmp(back) == 0) hummock_free_sized(block, sizeof wrong);
  hummock_on_bad_pointer(nullptr);
  for (int i = 0; i < 1000; ++i) {
    block = realloc(calloc(1, kOdd), kOdd + 1);
    free(block);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  void* volatile untouched = malloc(kUntouched);  // resident only where a replay writes to it
  one_of_each();
  in_threads();
  free(untouched);
  if (strcmp(what, "fork") == 0) fork_and_allocate();
  if (strcmp(what, "misuse") == 0) allocate_after_misuse();
  dprintf(1, "%d\n", kThreads * kRounds);
  if (strcmp(what, "kill") == 0) raise(SIGKILL);
  if (strcmp(what, "status") == 0) return 7;
  return 0;
}
