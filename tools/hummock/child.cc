#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace hummock::tool {
namespace {

pid_t receiver;

void pass_on(int signal) {
  if (receiver > 0) kill(receiver, signal);
}

}  // namespace

void pass_signals_to(pid_t child) {
  receiver = child;
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGINT, SIGQUIT}) sigaction(signal, &action, nullptr);
  action.sa_handler = pass_on;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
}

void catch_ends(void (*handler)(int)) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (signal(number, handler) == SIG_IGN) signal(number, SIG_IGN);
}

int make_memory(const char* name, std::size_t size) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  // Under `ulimit -f` there may be none: that is told instead of ending the command.
  const auto before = signal(SIGXFSZ, SIG_IGN);
  const bool fine = ftruncate(fd, static_cast<off_t>(size)) == 0 &&
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  signal(SIGXFSZ, before);
  if (fine) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

int exit_status(const char* command, int raw) {
  if (!WIFSIGNALED(raw)) return WEXITSTATUS(raw);
  fprintf(stderr, "%s: the program was ended by SIG%s\n", command, sigabbrev_np(WTERMSIG(raw)));
  return 128 + WTERMSIG(raw);
}

}  // namespace hummock::tool
