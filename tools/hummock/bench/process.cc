#include "bench/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "bench/tree.h"
#include "child.h"
#include "processes.h"

namespace hummock::tool {
namespace {

volatile sig_atomic_t interrupt_seen;

double seconds_of(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Limits {
  Clock::time_point start;
  double seconds;
  double bytes;
};

// Reads both pipes until they end; false when time or memory is up or the user has had enough.
bool collect(pid_t child, int out, int err, Outcome& outcome, const Limits& limits) {
  constexpr double kLook = 0.1;  // seconds between looks at the memory
  pollfd ends[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&outcome.out, &outcome.err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const double left = limits.seconds - seconds_since(limits.start);
    outcome.too_large = limits.bytes > 0 && static_cast<double>(resident_of(child)) > limits.bytes;
    outcome.timed_out = left <= 0;
    if (outcome.too_large || outcome.timed_out || interrupt_seen != 0) return false;
    if (poll(ends, 2, static_cast<int>(std::min(left, kLook) * 1000) + 1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        ends[i].fd = -1;
      }
    }
  }
  return true;
}

// A process may close its output and go on: it, too, has only so much time.
bool wait_for(pid_t child, int& status, rusage& usage, Outcome& outcome, const Limits& limits) {
  for (;;) {
    const pid_t got = wait4(child, &status, WNOHANG, &usage);
    if (got == child) return true;
    outcome.timed_out = seconds_since(limits.start) > limits.seconds;
    if (outcome.timed_out || interrupt_seen != 0) return false;
    usleep(2000);
  }
}

}  // namespace

// The first line of /proc/stat: user nice system idle iowait irq softirq steal.
MachineTime machine_time() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double part[8] = {};
  if (!(file >> cpu) || cpu != "cpu") return {};
  for (double& value : part) file >> value;
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(part[0] + part[1] + part[2] + part[5] + part[6]) * tick, part[7] * tick};
}

void set_others(Outcome& outcome, const MachineTime& before) {
  const MachineTime after = machine_time();
  outcome.other_seconds = before.busy < 0 ? -1 : after.busy - before.busy - outcome.cpu_seconds;
  outcome.steal_seconds = after.steal - before.steal;
}

double available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return 0.6 * 1024 * std::stod(line.substr(13));
  return 0;
}

void replace_process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      unsetenv(entry.c_str());
    } else {
      setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
    }
  }
  exec(arguments.front(), arguments);
  dprintf(2, "%s: %s\n", arguments.front().c_str(), strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

Outcome execute(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                double timeout, double memory) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error(strerror(errno));
  Outcome outcome;
  const MachineTime before = machine_time();
  const Limits limits = {Clock::now(), timeout, memory > 0 ? memory : available_memory()};
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(out[1], 1);
    dup2(err[1], 2);
    replace_process(arguments, environment);
  }
  setpgid(child, child);
  close(out[1]);
  close(err[1]);
  int status = 0;
  rusage usage = {};
  if (!collect(child, out[0], err[0], outcome, limits) || !wait_for(child, status, usage, outcome, limits)) {
    kill(-child, SIGKILL);
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
    }
  }
  close(out[0]);
  close(err[0]);
  outcome.seconds = seconds_since(limits.start);
  outcome.cpu_seconds = seconds_of(usage);
  outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  set_others(outcome, before);
  return outcome;
}

int run_openly(const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(strerror(errno));
  if (child == 0) replace_process(arguments, {});
  const int status = wait_for(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string output_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = execute(arguments, {"LD_PRELOAD", "LC_ALL=C"}, 20);
  return outcome.status == 0 ? outcome.out.substr(0, outcome.out.find('\n')) : "";
}

bool interrupted() {
  return interrupt_seen != 0;
}

void catch_interrupt() {
  catch_ends([](int) { interrupt_seen = 1; });
}

}  // namespace hummock::tool
