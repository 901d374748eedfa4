// Stacks: right in code without frame pointers, on any stack, in signal handlers, and never from malloc.
#include "trace/backtrace.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <initializer_list>

namespace trace = hummock::trace;

namespace {

constexpr unsigned kMost = 16;
constexpr uintptr_t kPlace = 4096;

struct Taken {
  void* frames[kMost];
  unsigned count = 0;

  template <class Function>
  bool has(Function* function) const {
    for (unsigned i = 0; i < count; ++i) {
      if ((reinterpret_cast<uintptr_t>(frames[i]) & ~(kPlace - 1)) == reinterpret_cast<uintptr_t>(function)) {
        return true;
      }
    }
    return false;
  }
};

Taken taken;

// callers() leaves out its own caller where the allocator is part of the program.
__attribute__((noinline)) void take() {
  taken.count = trace::callers(taken.frames, kMost);
  __asm__ volatile("" : : : "memory");
}

// Frames of several kinds, each on pages of its own.
__attribute__((noinline, aligned(kPlace))) void plain() {
  take();
  __asm__ volatile("" : : : "memory");
}
__attribute__((noinline, aligned(kPlace))) void with_array(unsigned size) {
  volatile char* bytes = static_cast<volatile char*>(__builtin_alloca(size));
  bytes[0] = 1;
  plain();
  bytes[size - 1] = 1;
}
__attribute__((noinline, aligned(kPlace))) void realigned(unsigned size) {
  alignas(128) volatile char bytes[128];
  bytes[size % 128] = 1;
  with_array(size);
  bytes[0] = bytes[1];
}
__attribute__((noinline, aligned(kPlace))) void large() {
  volatile char bytes[20000];
  bytes[0] = 1;
  realigned(300);
  bytes[19999] = bytes[0];
}

void check_all_kinds() {
  taken.count = 0;
  large();
  CHECK(taken.has(plain));
  CHECK(taken.has(with_array));
  CHECK(taken.has(realigned));
  CHECK(taken.has(large));
}

void* in_thread(void*) {
  check_all_kinds();
  return nullptr;
}

void on_signal(int) {
  check_all_kinds();
}

ucontext_t main_context, other_context;
void in_context() {
  check_all_kinds();
}

}  // namespace

TEST_CASE("each kind of frame is passed") {
  for (int round = 0; round < 3; ++round) check_all_kinds();  // later from the table
}

TEST_CASE("no more frames than asked for, none for none") {
  void* frames[2] = {nullptr, nullptr};
  CHECK(trace::callers(frames, 0) == 0);
  CHECK(trace::callers(frames, 1) == 1);
  CHECK(frames[1] == nullptr);
}

TEST_CASE("on a small thread's stack") {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, in_thread, nullptr) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_CASE("in a signal handler, also on a stack of its own") {
  static char room[64 << 10];
  stack_t stack = {};
  stack.ss_sp = room;
  stack.ss_size = sizeof(room);
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  for (const int flags : {0, SA_ONSTACK}) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

// The stack ends at a page that cannot be read, which the walk must not touch.
TEST_CASE("on a coroutine's stack between inaccessible pages") {
  constexpr size_t kStack = 64 << 10;
  char* room =
      static_cast<char*>(mmap(nullptr, kStack + 2 * kPlace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(room != MAP_FAILED);
  REQUIRE(mprotect(room + kPlace, kStack, PROT_READ | PROT_WRITE) == 0);
  for (int round = 0; round < 2; ++round) {
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = room + kPlace;
    other_context.uc_stack.ss_size = kStack;
    other_context.uc_link = &main_context;
    makecontext(&other_context, in_context, 0);
    swapcontext(&main_context, &other_context);
  }
  munmap(room, kStack + 2 * kPlace);
}

#if defined(__x86_64__)
// Code without unwind data and with nonsense in rbp and on the stack: the walk ends, it does not crash.
TEST_CASE("nonsense ends the stack") {
  const unsigned char code[] = {
      0x55,                                                        // push rbp
      0x48, 0xbd, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x00, 0x00,  // mov rbp, 0x7ffffffffff8
      0x48, 0x83, 0xec, 0x20,                                      // sub rsp, 32
      0xff, 0xd7,                                                  // call rdi
      0x48, 0x83, 0xc4, 0x20,                                      // add rsp, 32
      0x5d, 0xc3,                                                  // pop rbp; ret
  };
  void* place = mmap(nullptr, kPlace, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(place != MAP_FAILED);
  memcpy(place, code, sizeof(code));
  const auto call = reinterpret_cast<void (*)(void (*)())>(place);
  for (const uint64_t bp :
       {uint64_t{0x7ffffffffff8}, uint64_t{0}, uint64_t{8}, ~uint64_t{7}, uint64_t{0x1234567}}) {
    memcpy(static_cast<char*>(place) + 3, &bp, sizeof(bp));
    taken.count = 0;
    call(plain);
    CHECK(taken.has(plain));
    CHECK(taken.count <= 2);
  }
  munmap(place, kPlace);
}
#endif
