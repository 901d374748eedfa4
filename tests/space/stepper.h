// Counts executed instructions by single-stepping a child of fork, which carries out one call after
// another as told; or the system calls that it makes. Only for machines whose kernel can single-step (x86-64
// and 64-bit ARM; not under an emulator).
#ifndef HUMMOCK_TESTS_SPACE_STEPPER_H
#define HUMMOCK_TESTS_SPACE_STEPPER_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stepper {

// What the child is in: between begin() and end() its instructions are counted.
struct Meter {
  volatile int counting;  // written by the child, read by the parent through shared memory
  volatile int kind;
};
inline Meter* meter;

enum class What { instructions, system_calls };
inline What what = What::instructions;

inline constexpr int kKinds = 9;
struct Counts {
  uint64_t most[kKinds] = {};
  uint64_t calls[kKinds] = {};
  uint64_t sum[kKinds] = {};
};

// In the child. The trap hands over to the parent, which steps until the next trap. Its own instructions
// are in the count: empty calls tell how many.
__attribute__((noinline)) inline void trap() {
  raise(SIGTRAP);
}

template <class Call>
__attribute__((noinline)) void counted(int kind, Call call) {
  meter->kind = kind;
  trap();
  meter->counting = 1;
  asm volatile("" ::: "memory");
  call();
  asm volatile("" ::: "memory");
  meter->counting = 0;
  if (what == What::system_calls) trap();
}

inline void open_meter() {
  meter = static_cast<Meter*>(
      mmap(nullptr, sizeof(Meter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (meter == MAP_FAILED) abort();
}

// Who steps and who is stepped take turns: between two processors each turn is an interrupt, which takes
// many times as long.
inline void stay_here() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &here);
  sched_setaffinity(0, sizeof here, &here);  // refused: it takes longer
}

// From the trap of counted() to the end of the call. False: the child is no more.
inline bool step(pid_t child, int* status, uint64_t* steps) {
  bool begun = false;
  while (!begun || meter->counting != 0) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) abort();
    waitpid(child, status, 0);
    if (!WIFSTOPPED(*status)) return false;
    if (WSTOPSIG(*status) != SIGTRAP) break;
    begun = begun || meter->counting != 0;
    *steps += begun;
  }
  return true;
}

// To the second trap.
inline bool count_system_calls(pid_t child, int* status, uint64_t* calls) {
  constexpr int kAtCall = SIGTRAP | 0x80;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, reinterpret_cast<void*>(long{PTRACE_O_TRACESYSGOOD}));
  for (bool inside = false;;) {
    if (ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0) abort();
    waitpid(child, status, 0);
    if (!WIFSTOPPED(*status)) return false;
    if (WSTOPSIG(*status) == SIGTRAP) return true;
    if (WSTOPSIG(*status) != kAtCall) continue;
    inside = !inside;
    *calls += inside && meter->counting != 0;
  }
}

// Runs `work` in a child; counts what it does inside counted(). Returns the child's wait status.
template <class Work>
int run(Work work, Counts* counts) {
  stay_here();
  open_meter();
  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
    if (WSTOPSIG(status) != SIGTRAP) {  // the program's own end by a signal
      ptrace(PTRACE_CONT, child, nullptr, reinterpret_cast<void*>(static_cast<long>(WSTOPSIG(status))));
      waitpid(child, &status, 0);
      continue;
    }
    uint64_t count = 0;
    const bool lives = what == What::instructions ? step(child, &status, &count)
                                                  : count_system_calls(child, &status, &count);
    if (!lives) return status;
    const int kind = meter->kind;
    if (count > counts->most[kind]) counts->most[kind] = count;
    counts->sum[kind] += count;
    ++counts->calls[kind];
    ptrace(PTRACE_CONT, child, nullptr, nullptr);
    waitpid(child, &status, 0);
  }
  munmap(meter, sizeof(Meter));
  return status;
}

}  // namespace stepper

#endif  // HUMMOCK_TESTS_SPACE_STEPPER_H
