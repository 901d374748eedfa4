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

void exec(const std::string& path, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(path.c_str(), arguments.data());
}

std::string read_pipe(int end) {
  std::string all;
  char piece[4096];
  for (ssize_t got; (got = read(end, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) all.append(piece, static_cast<size_t>(got));
  close(end);
  return all;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int exit_status(const char* command, int raw) {
  if (!WIFSIGNALED(raw)) return WEXITSTATUS(raw);
  fprintf(stderr, "%s: the program was ended by SIG%s\n", command, sigabbrev_np(WTERMSIG(raw)));
  return 128 + WTERMSIG(raw);
}

}  // namespace hummock::tool
