#include "child.h"

#include <signal.h>
#include <sys/wait.h>

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

int exit_status(const char* command, int raw) {
  if (!WIFSIGNALED(raw)) return WEXITSTATUS(raw);
  fprintf(stderr, "%s: the program was ended by SIG%s\n", command, sigabbrev_np(WTERMSIG(raw)));
  return 128 + WTERMSIG(raw);
}

}  // namespace hummock::tool
