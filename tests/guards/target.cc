// A program whose faults with memory are known: guards find some of them. It runs on the system's malloc's
// interface alone, so that it finds Hummock by LD_PRELOAD.
//
//   target [child] KIND BLOCKS FAULTS [SIZE [ALIGNMENT]]
//   target elsewhere|sent|handler
//
// BLOCKS blocks are allocated and freed, 64 of them live at a time; FAULTS of them, evenly spread, are
// misused in the way that KIND names.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t kLive = 64;

using Fault = void (*)(volatile char* block, size_t size);

__attribute__((noinline)) char* allocate_here(size_t align, size_t size) {
  void* block = align != 0 ? aligned_alloc(align, size) : malloc(size);
  if (block == nullptr) abort();
  return static_cast<char*>(block);
}
__attribute__((noinline)) void free_here(void* block) {
  free(block);
}

__attribute__((noinline)) void write_far_behind(volatile char* block, size_t size) {
  block[(size + 15) / 16 * 16 + 24] = 1;
}
__attribute__((noinline)) void read_far_behind(volatile char* block, size_t size) {
  static_cast<void>(block[(size + 15) / 16 * 16 + 24]);
}
__attribute__((noinline)) void write_next_byte(volatile char* block, size_t size) {
  block[size] = 1;
}
__attribute__((noinline)) void write_before(volatile char* block, size_t) {
  block[-1] = 1;
}
__attribute__((noinline)) void write_after_free(volatile char* block, size_t size) {
  free_here(const_cast<char*>(block));
  block[size / 2] = 1;  // NOLINT(clang-analyzer-unix.Malloc): the fault
}
__attribute__((noinline)) void read_after_free(volatile char* block, size_t size) {
  free_here(const_cast<char*>(block));
  static_cast<void>(block[size - 1]);  // NOLINT(clang-analyzer-unix.Malloc): likewise
}
__attribute__((noinline)) void free_twice(volatile char* block, size_t) {
  free_here(const_cast<char*>(block));
  free_here(const_cast<char*>(block));  // NOLINT(clang-analyzer-unix.Malloc): likewise
}
__attribute__((noinline)) void free_inside(volatile char* block, size_t) {
  free_here(const_cast<char*>(block + 1));
}
__attribute__((noinline)) void do_nothing(volatile char*, size_t) {}

struct Kind {
  const char* name;
  Fault fault;
  bool frees;  // the block is gone after it
};
constexpr Kind kKinds[] = {
    {"write-behind", write_far_behind, false},
    {"read-behind", read_far_behind, false},
    {"next-byte", write_next_byte, false},
    {"before", write_before, false},
    {"write-freed", write_after_free, true},
    {"read-freed", read_after_free, true},
    {"twice", free_twice, true},
    {"inside", free_inside, true},
    {"none", do_nothing, false},
};

void run(const Kind& kind, size_t blocks, size_t faults, size_t size, size_t align) {
  static char* live[kLive];
  const size_t each = faults == 0 ? 0 : blocks / faults;
  for (size_t i = 0; i < blocks; ++i) {
    char*& place = live[i % kLive];
    if (place != nullptr) free_here(place);
    place = allocate_here(align, size);
    place[0] = place[size - 1] = 1;
    if (each == 0 || i % each != each / 2) continue;
    kind.fault(place, size);
    if (kind.frees) place = nullptr;
  }
  for (char*& block : live) free_here(block), block = nullptr;
}

void* run_in_thread(void* argument) {
  char** words = static_cast<char**>(argument);
  for (const Kind& kind : kKinds) {
    if (strcmp(kind.name, words[1]) != 0) continue;
    run(kind, strtoul(words[2], nullptr, 10), strtoul(words[3], nullptr, 10),
        words[4] != nullptr ? strtoul(words[4], nullptr, 10) : 100,
        words[4] != nullptr && words[5] != nullptr ? strtoul(words[5], nullptr, 10) : 0);
    return argument;
  }
  return nullptr;
}

// ---- Faults elsewhere ---------------------------------------------------------------------------

void handle(int) {
  constexpr char kText[] = "the program's handler\n";
  if (write(1, kText, sizeof kText - 1) < 0) _exit(2);
  _exit(7);
}

int fault_elsewhere() {
  volatile int* nowhere = reinterpret_cast<volatile int*>(uintptr_t{8});
  *nowhere = 1;
  return 1;
}

// Guards come after the program's own handler.
int fault_with_handler() {
  signal(SIGSEGV, handle);
  auto* const set =
      reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_DEFAULT, "hummock_option_set"));
  if (set == nullptr || set("guards", "on") != 0) return 1;
  return fault_elsewhere();
}

// Guards go on in a child.
int in_child(char** words) {
  const pid_t child = fork();
  if (child == 0) _exit(run_in_thread(words) != nullptr ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int in_thread(char** words) {
  pthread_t thread;
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, run_in_thread, words) != 0) return 2;
  pthread_join(thread, &result);
  return result != nullptr ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  if (strcmp(words[1], "elsewhere") == 0) return fault_elsewhere();
  if (strcmp(words[1], "sent") == 0) return raise(SIGSEGV);
  if (strcmp(words[1], "handler") == 0) return fault_with_handler();
  if (count >= 5 && strcmp(words[1], "child") == 0) return in_child(words + 1);
  return count >= 4 ? in_thread(words) : 2;
}
