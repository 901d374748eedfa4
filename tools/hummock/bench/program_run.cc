#include "bench/program_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/process.h"
#include "bench/tree.h"
#include "processes.h"

namespace hummock::tool {
namespace {

namespace fs = std::filesystem;

constexpr int kLook = 5;                   // milliseconds between looks at the memory
constexpr unsigned kLooksForLibrary = 20;  // after so many without it, the program does not run on it
constexpr double kEndLimit = 10;           // seconds that a server has to end
constexpr std::size_t kPoints = 200;       // of memory over time
constexpr double kMegabyte = 1 << 20;

// Files in the program's folder, for standard error.
constexpr const char* kMessages = "messages";
constexpr const char* kClientMessages = "client-messages";

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// A process of its own group, which is ended with all that it started when this goes before it.
class Process {
 public:
  Process(const Command& command, const std::vector<std::string>& environment, const std::string& folder,
          const std::string& input, const std::string& messages);
  ~Process() { end(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  bool ended() const { return ended_; }
  const rusage& usage() const { return usage_; }
  int status() const { return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_); }

  // True when it has ended, within so many milliseconds.
  bool ends_within(int milliseconds);
  void end(int signal);

 private:
  pid_t id_;
  int descriptor_ = -1;
  bool ended_ = false;
  bool group_ended_ = false;
  int status_ = 0;
  rusage usage_ = {};
};

Process::Process(const Command& command, const std::vector<std::string>& environment,
                 const std::string& folder, const std::string& input, const std::string& messages)
    : id_(fork()) {
  if (id_ < 0) throw std::runtime_error(strerror(errno));
  if (id_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    const bool there = chdir(folder.c_str()) == 0;
    const int in = open(input.empty() ? "/dev/null" : input.c_str(), O_RDONLY);
    const int out = open("/dev/null", O_WRONLY);
    const int err = open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!there || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(125);
    replace_process(command, environment);
  }
  setpgid(id_, id_);
#ifdef SYS_pidfd_open
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, id_, 0));
#endif
}

bool Process::ends_within(int milliseconds) {
  if (ended_) return true;
  if (descriptor_ >= 0) {
    pollfd end = {descriptor_, POLLIN, 0};
    poll(&end, 1, milliseconds);
  } else {
    usleep(1000);
  }
  if (wait4(id_, &status_, WNOHANG, &usage_) != id_) return false;
  ended_ = true;
  if (descriptor_ >= 0) close(descriptor_);
  return true;
}

// Its group goes as well: what it started may have outlived it.
void Process::end(int signal) {
  if (group_ended_) return;
  group_ended_ = true;
  if (!ended_ && signal != SIGKILL) {
    kill(id_, signal);
    const Clock::time_point start = Clock::now();
    while (!ends_within(kLook) && seconds_since(start) < kEndLimit && !interrupted()) {
    }
  }
  kill(-id_, SIGKILL);
  while (!ends_within(100)) {
  }
}

// The run of one program, and what was seen of it.
class ProgramRun {
 public:
  ProgramRun(const JudgeProgram& program, const Allocator& allocator, const std::string& folder,
             const OneRun& options)
      : program_(program),
        allocator_(allocator),
        folder_(folder),
        options_(options),
        limit_(options.memory > 0 ? options.memory : available_memory()) {}

  Json run();

 private:
  bool watch(Process& process, pid_t root);
  void look(pid_t root);
  void note(const Process& process);
  void run_alone(const std::vector<std::string>& environment);
  void run_server(const std::vector<std::string>& environment);
  void wait_for_socket(Process& server);
  std::string error(const Process& process, const char* messages) const;
  Json report();

  const JudgeProgram& program_;
  const Allocator& allocator_;
  const std::string& folder_;
  const OneRun& options_;
  const double limit_;
  const double own_resident_ = static_cast<double>(resident_of(getpid()));
  Clock::time_point start_ = Clock::now();
  Outcome outcome_;  // of the program; with its client's processor time
  std::string error_;
  double seconds_ = 0, cpu_ = 0, system_ = 0, peak_ = 0;
  long minor_faults_ = 0, major_faults_ = 0;
  unsigned looks_ = 0;
  bool library_seen_ = false;
  Json series_ = Json::array();
  unsigned between_ = 1;  // looks between points of the series
};

void ProgramRun::look(pid_t root) {
  const double resident = tree_resident(root);
  peak_ = std::max(peak_, resident);
  outcome_.too_large = limit_ > 0 && resident > limit_;
  if (!library_seen_ && !allocator_.library.empty())
    library_seen_ = tree_has_library(root, fs::path(allocator_.library).filename().string());
  if (options_.first && looks_ % between_ == 0)
    series_.push_back({{"t", seconds_since(start_)}, {"resident", resident}});
  ++looks_;
  if (series_.size() < kPoints) return;
  for (std::size_t i = 0; i < kPoints / 2; ++i) series_[i] = series_[2 * i];
  series_.erase(series_.begin() + kPoints / 2, series_.end());
  between_ *= 2;
}

// Until `process` ends; the memory is that of `root` and what it started. False when it does not.
bool ProgramRun::watch(Process& process, pid_t root) {
  while (!process.ends_within(kLook)) {
    look(root);
    outcome_.timed_out = seconds_since(start_) > options_.timeout;
    if (outcome_.too_large || outcome_.timed_out || interrupted()) return false;
  }
  return true;
}

// The system counts with a process's own figures those of the children it has waited for.
void ProgramRun::note(const Process& process) {
  const rusage& usage = process.usage();
  system_ = seconds_of(usage.ru_stime);
  cpu_ = seconds_of(usage.ru_utime) + system_;
  minor_faults_ = usage.ru_minflt;
  major_faults_ = usage.ru_majflt;
  // A process begins as a copy of this one, and the system remembers how large that was.
  const double largest = static_cast<double>(usage.ru_maxrss) * 1024;
  if (largest > own_resident_ + kMegabyte) peak_ = std::max(peak_, largest);
  outcome_.cpu_seconds += cpu_;
}

std::string ProgramRun::error(const Process& process, const char* messages) const {
  Outcome outcome = outcome_;
  outcome.status = process.status();
  std::ifstream file(folder_ + "/" + messages);
  outcome.err.assign(std::istreambuf_iterator<char>(file), {});
  return what_failed(outcome, options_.timeout);
}

void ProgramRun::run_alone(const std::vector<std::string>& environment) {
  Process process(program_.command, environment, folder_, program_.input, kMessages);
  start_ = Clock::now();
  if (!watch(process, process.id())) process.end(SIGKILL);
  seconds_ = seconds_since(start_);
  note(process);
  error_ = error(process, kMessages);
}

bool listens(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(connection);
  return connected;
}

void ProgramRun::wait_for_socket(Process& server) {
  const std::string place = folder_ + "/" + program_.socket;
  if (place.size() >= sizeof sockaddr_un::sun_path) error_ = place + " is too long for a socket";
  const Clock::time_point start = Clock::now();
  while (error_.empty() && !listens(place)) {
    if (server.ends_within(kLook)) error_ = "the server ended: " + error(server, kMessages);
    if (seconds_since(start) > kEndLimit) error_ = "the server does not listen";
    if (!error_.empty() || interrupted()) return;
  }
}

// Time is the client's, which runs on what the system has; all else is the server's.
void ProgramRun::run_server(const std::vector<std::string>& environment) {
  fs::remove(folder_ + "/" + program_.socket);
  Process server(program_.command, environment, folder_, program_.input, kMessages);
  wait_for_socket(server);
  if (!error_.empty() || interrupted()) return;
  start_ = Clock::now();
  Process client(program_.client, program_environment(program_, nullptr, folder_), folder_, "",
                 kClientMessages);
  if (!watch(client, server.id())) client.end(SIGKILL);
  seconds_ = seconds_since(start_);
  const bool survived = !server.ends_within(0);
  server.end(SIGTERM);
  note(server);
  outcome_.cpu_seconds += seconds_of(client.usage().ru_utime) + seconds_of(client.usage().ru_stime);
  if (!survived)
    error_ = "the server ended: " + error(server, kMessages);
  else if (client.status() != 0)
    error_ = "the client failed: " + error(client, kClientMessages);
}

Json ProgramRun::report() {
  Json run = {{"unit", "run"},
              {"operations", 1},
              {"seconds", std::max(seconds_, 1e-6)},
              {"cpu_seconds", cpu_},
              {"system_seconds", system_},
              {"peak_bytes", static_cast<std::uint64_t>(peak_)},
              {"minor_faults", minor_faults_},
              {"major_faults", major_faults_},
              {"page_size", sysconf(_SC_PAGESIZE)}};
  if (options_.first) run["series"] = std::move(series_);
  set_circumstances(run, outcome_);
  return run;
}

Json ProgramRun::run() {
  const Clock::time_point begin = Clock::now();
  const MachineTime before = machine_time();
  const std::vector<std::string> environment = program_environment(program_, &allocator_, folder_);
  if (program_.client.empty())
    run_alone(environment);
  else
    run_server(environment);
  outcome_.seconds = seconds_since(begin);
  set_others(outcome_, before);
  if (interrupted()) error_ = "interrupted";
  if (error_.empty() && !library_seen_ && !allocator_.library.empty() && looks_ >= kLooksForLibrary)
    error_ = "the program does not load " + allocator_.library;
  if (!error_.empty()) return {{"error", error_}, {"took_seconds", outcome_.seconds}};
  return report();
}

}  // namespace

std::vector<std::string> program_environment(const JudgeProgram& program, const Allocator* allocator,
                                             const std::string& folder) {
  std::vector<std::string> environment = {"LD_PRELOAD"};
  // A program that brings an allocator of its own, as Debian's redis-server does, runs on libc's all the
  // same.
  if (allocator != nullptr)
    environment = allocator->library.empty() ? std::vector<std::string>{"LD_PRELOAD=libc.so.6"}
                                             : environment_of(*allocator);
  environment.insert(environment.end(),
                     {"LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + folder, "TMPDIR=" + folder, "GIT_DIR"});
  environment.insert(environment.end(), program.environment.begin(), program.environment.end());
  return environment;
}

Json run_program(const JudgeProgram& program, const Allocator& allocator, const std::string& folder,
                 const OneRun& options) {
  return ProgramRun(program, allocator, folder, options).run();
}

}  // namespace hummock::tool
