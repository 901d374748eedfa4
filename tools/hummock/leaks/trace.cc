#include "trace.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "../profile/start.h"
#include "child.h"

namespace hummock::tool {
namespace {

constexpr long kExitOfThread = 60, kExitOfThreadArm = 93;
constexpr long kTraced = PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

pid_t child;

user_regs_struct registers_of(pid_t thread) {
  user_regs_struct registers = {};
  iovec room = {&registers, sizeof registers};
  ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &room);
  return registers;
}

// Does it end alone, by the system call that ends one thread?
bool ends_alone(pid_t thread) {
  const user_regs_struct registers = registers_of(thread);
#if defined(__x86_64__)
  (void)kExitOfThreadArm;
  return static_cast<long>(registers.orig_rax) == kExitOfThread;
#else
  (void)kExitOfThread;
  return static_cast<long>(registers.regs[8]) == kExitOfThreadArm;
#endif
}

StoppedThread stopped_thread(pid_t thread) {
  const user_regs_struct registers = registers_of(thread);
  StoppedThread stopped;
#if defined(__x86_64__)
  stopped.stack_pointer = registers.rsp;
#else
  stopped.stack_pointer = registers.sp;
#endif
  stopped.registers.resize(sizeof registers / sizeof(uint64_t));
  memcpy(stopped.registers.data(), &registers, stopped.registers.size() * sizeof(uint64_t));
  return stopped;
}

// The threads of the program, as they stop and go on.
class Trace {
 public:
  explicit Trace(const std::function<void(const StoppedProcess&)>& look) : look_(look) {}

  // What became of the program, as waitpid() says it.
  int follow() {
    ending_[child] = false;
    for (;;) {
      int raw = 0;
      const pid_t thread = waitpid(-1, &raw, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) return status_;
      if (WIFSTOPPED(raw)) {
        on_stop(thread, raw);
        continue;
      }
      if (thread == child) status_ = raw;
      ending_.erase(thread);
      look_if_all_stopped();
    }
  }

 private:
  void on_stop(pid_t thread, int raw) {
    const int event = raw >> 16, signal = WSTOPSIG(raw);
    ending_.try_emplace(thread, false);
    if (event == PTRACE_EVENT_EXIT) return on_exit(thread);
    if (event == PTRACE_EVENT_EXEC) {
      ending_.clear();  // of its threads one is left
      ending_[thread] = false;
    }
    const bool stays = event == PTRACE_EVENT_STOP &&
                       (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
    ptrace(stays ? PTRACE_LISTEN : PTRACE_CONT, thread, nullptr, event == 0 ? signal : 0);
  }

  // All threads of a process that ends stop here before their memory goes. One that ends alone goes on, if
  // others are left.
  void on_exit(pid_t thread) {
    size_t left = 0;
    for (const auto& [each, ends] : ending_) left += ends ? 0 : 1;
    if (ends_alone(thread) && left > 1 && !done_) {
      ptrace(PTRACE_CONT, thread, nullptr, 0);
      ending_.erase(thread);
      return;
    }
    ending_[thread] = true;
    look_if_all_stopped();
  }

  void look_if_all_stopped() {
    if (ending_.empty()) return;
    for (const auto& [each, ends] : ending_)
      if (!ends) return;
    if (!done_) {
      done_ = true;
      StoppedProcess process = {child, ending_.begin()->first, {}};
      for (const auto& [each, ends] : ending_) process.threads.push_back(stopped_thread(each));
      look_(process);
    }
    for (const auto& [each, ends] : ending_) ptrace(PTRACE_CONT, each, nullptr, 0);
    ending_.clear();
  }

  const std::function<void(const StoppedProcess&)>& look_;
  std::map<pid_t, bool> ending_;  // of each thread: does it stand at its end?
  bool done_ = false;
  int status_ = 0;
};

}  // namespace

int run_until_end(const LeaksOptions& options, int memory,
                  const std::function<void(const StoppedProcess&)>& look) {
  int ready[2];
  if (pipe(ready) != 0) return 1;
  fflush(nullptr);
  child = fork();
  if (child == 0) {
    close(ready[1]);
    char byte;
    if (read(ready[0], &byte, 1) != 1) _exit(125);
    close(ready[0]);
    become_profiled(memory, 1, options.library, options.command);
  }
  close(ready[0]);
  const bool traced = child > 0 && ptrace(PTRACE_SEIZE, child, nullptr, kTraced) == 0;
  if (!traced) fprintf(stderr, "hummock leaks: the program cannot be traced: %s\n", strerror(errno));
  if (traced) pass_signals_to(child);
  if (traced && write(ready[1], "", 1) != 1) perror("hummock leaks");
  close(ready[1]);
  if (!traced) {
    if (child > 0) waitpid(child, nullptr, 0);
    return 1;
  }
  return exit_status("hummock leaks", Trace(look).follow());
}

}  // namespace hummock::tool
