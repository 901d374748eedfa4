// Blocks freed twice: other sizes, other calls, other moments.
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "misuse.h"

namespace battery {
namespace {

template <size_t kSize>
void of() {
  void* p = in_crowd(kSize, 2, 2);
  call::free(p);
  call::free(p);
}

// Only realloc gives blocks of 8 bytes.
char* cut_to_8() {
  char* p = static_cast<char*>(call::realloc(call::malloc(64), 8));
  memset(p, '8', 8);
  return p;
}

void of_8() {
  for (int i = 0; i < 20; ++i) keep(cut_to_8(), 8);
  void* p = cut_to_8();
  for (int i = 0; i < 20; ++i) keep(cut_to_8(), 8);
  call::free(p);
  call::free(p);
}

template <size_t kAlignment, size_t kSize>
void aligned_to() {
  void* p = nullptr;
  if (call::posix_memalign(&p, kAlignment, kSize) != 0) end(kFailed, "no aligned memory");
  call::free(p);
  call::free(p);
}

void of_calloc() {
  void* p = call::calloc(4, 100);
  keep(call::calloc(4, 100), 400);
  call::free(p);
  call::free(p);
}

void of_nothing() {
  void* p = call::malloc(0);
  keep(call::malloc(0), 0);
  call::free(p);
  call::free(p);
}

void sized() {
  void* p = call::new_one(200);
  call::delete_sized(p, 200);
  call::delete_sized(p, 200);
}

void array() {
  void* p = call::new_array(5000);
  call::delete_array(p);
  call::delete_array(p);
}

void grown_in_place() {
  void* p = call::realloc(in_crowd(100), 110);
  call::free(p);
  call::free(p);
}

void huge_moved() {
  void* p = call::malloc(40 * MiB);
  void* next = call::malloc(40 * MiB);
  void* q = call::realloc(p, 90 * MiB);
  if (p == q) end(kSkipped, "skipped: realloc did not move the block");
  keep(q, 90 * MiB);
  keep(next, 40 * MiB);
  call::free(p);
}

void after_trim() {
  void* p = in_crowd(20 * KiB, 2, 2);
  call::free(p);
  malloc_trim(0);
  call::free(p);
}

// The child frees what its parent had freed before.
void in_child() {
  void* p = in_crowd(64);
  call::free(p);
  const pid_t child = fork();
  if (child == 0) {
    call::free(p);
    probation(64);
    _Exit(kPassed);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) end(kFailed, "lost the child");
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status));
}

void* at_exit_block;

void at_exit() {
  at_exit_block = in_crowd(64);
  atexit([] {
    call::free(at_exit_block);
    call::free(at_exit_block);
    probation(64);
  });
  exit(kPassed);
}

// In a destructor of the thread's own, when it ends.
void in_thread_end() {
  pthread_key_t key;
  pthread_key_create(&key, [](void* p) {
    call::free(p);
    call::free(p);
  });
  on_thread([key] { pthread_setspecific(key, in_crowd(64)); });
}

// Freed by the thread that had it, which ends; then by another one.
void ended_freer() {
  void* p = nullptr;
  on_thread([&p] {
    p = in_crowd(64);
    call::free(p);
  });
  call::free(p);
}

constexpr char kFamily[] = "double free";

constexpr Case kCases[] = {
    {"double_free_8", kFamily, "8 bytes, from realloc(p, 8)", of_8, 16},
    {"double_free_32", kFamily, "32 bytes", of<32>, 32},
    {"double_free_48", kFamily, "48 bytes", of<48>, 48},
    {"double_free_128", kFamily, "128 bytes", of<128>, 128},
    {"double_free_1000", kFamily, "1,000 bytes", of<1000>, 1000},
    {"double_free_3000", kFamily, "3,000 bytes", of<3000>, 3000},
    {"double_free_8k", kFamily, "8 KiB", of<8 * KiB>, 8 * KiB},
    {"double_free_64k", kFamily, "64 KiB", of<64 * KiB>, 64 * KiB},
    {"double_free_1m", kFamily, "1 MiB", of<1 * MiB>, 1 * MiB},
    {"double_free_3m", kFamily, "3 MiB", of<3 * MiB>, 3 * MiB},
    {"double_free_nothing", kFamily, "malloc(0)", of_nothing, 16},
    {"double_free_calloc", kFamily, "calloc(4, 100)", of_calloc, 400},
    {"double_free_aligned_32", kFamily, "100 bytes aligned to 32", aligned_to<32, 100>, 100},
    {"double_free_aligned_64k", kFamily, "100 bytes aligned to 64 KiB", aligned_to<64 * KiB, 100>, 100},
    {"double_free_aligned_2m", kFamily, "3 MiB aligned to 2 MiB", aligned_to<2 * MiB, 3 * MiB>, 3 * MiB},
    {"double_delete_sized", kFamily, "operator delete(p, 200) twice", sized, 200},
    {"double_delete_array", kFamily, "operator delete[] twice", array, 5000},
    {"double_free_grown_in_place", kFamily, "100 bytes that realloc made 110", grown_in_place, 110},
    {"double_free_huge_moved", kFamily, "40 MiB that realloc moved", huge_moved, 1 * MiB},
    {"double_free_after_trim", kFamily, "20 KiB, with malloc_trim between", after_trim, 20 * KiB},
    {"double_free_in_child", kFamily, "freed, then freed again by a forked child", in_child},
    {"double_free_at_exit", kFamily, "in an exit handler", at_exit},
    {"double_free_in_thread_end", kFamily, "in a destructor of an ending thread", in_thread_end},
    {"double_free_ended_freer", kFamily, "freed by its thread, which ended, then by another", ended_freer},
};

}  // namespace

const Cases double_free_more_cases{kCases};

}  // namespace battery
