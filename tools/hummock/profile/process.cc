#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "child.h"
#include "figures.h"
#include "processes.h"
#include "session.h"

namespace hummock::tool {
namespace {

constexpr const char* kLink = "/memfd:" HUMMOCK_PROFILE_NAME " (deleted)";

volatile sig_atomic_t stopped;

void on_signal(int) {
  stopped = 1;
}

void complain(const char* command, int pid, const std::string& what) {
  fprintf(stderr, "%s: process %d: %s\n", command, pid, what.c_str());
}

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// One that has ended stays in the table of processes until its parent looks.
bool is_running(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t after = text.rfind(") ");  // its name may have parentheses
  return after != std::string::npos && text.size() > after + 2 && text[after + 2] != 'Z' &&
         text[after + 2] != 'X';
}

// Why it did not start; empty: it did.
std::string why_not(int result) {
  switch (result) {
    case 0:
      return "";
    case EINVAL:
      return "its version of Hummock has no profiler";
    case EPERM:
      return "it runs in checked mode or on a space, where there is no profile";
    case ENOMEM:
      return "it has no memory or no descriptor for a profile";
    case -1:
      return kNoAnswer;
    default:
      return strerror(result);
  }
}

// An open profile of a process. Several may be there: of who started it, and of itself.
class Watched {
 public:
  Watched(PageFile page, unsigned wait_ms) : page_(std::move(page)), wait_ms_(wait_ms) {
    pid_ = page_.pid();
    number_ = number_in_its_namespace(pid_);
  }
  Watched(Watched&&) = default;
  ~Watched() {
    for (const int fd : fds_) close(fd);
  }

  int pid() const { return pid_; }

  // Starts the profiler, unless it runs. Empty, or why not.
  std::string start(uint64_t mean) {
    std::string why;
    open_files();
    before_ = read(&why);
    if (before_ && before_->on && (mean == 0 || before_->mean == mean)) return "";
    if (!before_ && !may_make_page(pid_, &why)) return why;
    const int64_t value = mean != 0 ? static_cast<int64_t>(mean) : -1;
    const int result = page_.request(HUMMOCK_REQUEST_PROFILE, 0, value, wait_ms_);
    // Who answers later shall not begin when nobody looks.
    if (result < 0) page_.request(HUMMOCK_REQUEST_PROFILE, 0, 0, 0);
    why = why_not(result);
    if (!why.empty()) return why;
    ours_ = true;
    if (!before_) open_files();
    return "";
  }

  // Stops it, if it was started here, and takes what there is; the process may have ended meanwhile.
  std::optional<RawProfile> finish(bool growth, std::string* why) {
    auto profile = read(why);
    if (profile && before_) subtract(&*profile, *before_);
    if (growth && profile && before_) subtract_live(&*profile, *before_);
    if (ours_ && is_running(pid_)) page_.request(HUMMOCK_REQUEST_PROFILE, 0, 0, wait_ms_);
    return profile;
  }

 private:
  void open_files() {
    std::string why;
    for (const int fd : open_links_to(pid_, kLink, &why)) fds_.push_back(fd);
  }

  // The latest of its own.
  std::optional<RawProfile> read(std::string* why) const {
    std::optional<RawProfile> latest;
    *why = "it has no profile";
    for (const int fd : fds_) {
      for (RawProfile& each : read_profiles(fd, why)) {
        if (each.pid == number_ && (!latest || each.started > latest->started)) latest = std::move(each);
      }
    }
    return latest;
  }

  PageFile page_;
  unsigned wait_ms_;
  int pid_ = 0;
  uint32_t number_ = 0;
  std::vector<int> fds_;
  std::optional<RawProfile> before_;
  bool ours_ = false;
};

// True: a line, or the end, came from standard input within so many microseconds.
bool has_enter(useconds_t patience) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, static_cast<int>(patience / 1000) + 1) > 0;
}

// Until so many seconds have passed, a signal came, all processes have ended, or, if it counts, Enter.
double wait_for(double seconds, bool enter, const std::vector<Watched>& all) {
  const double from = seconds_now();
  while (stopped == 0 && seconds_now() - from < seconds) {
    bool alive = false;
    for (const Watched& each : all) alive = alive || is_running(each.pid());
    if (!alive) break;
    const double left = seconds - (seconds_now() - from);
    const auto pause = static_cast<useconds_t>(left < 0.1 ? left * 1e6 + 1 : 100000);
    if (!enter) usleep(pause);
    if (enter && has_enter(pause)) break;
  }
  return seconds_now() - from;
}

}  // namespace

std::optional<Report> watch_processes(const ProfileOptions& options) {
  catch_ends(on_signal);
  const char* command = options.command_name;
  std::vector<Watched> all;
  const std::vector<int> pids = find_processes(options.process);
  if (pids.empty()) fprintf(stderr, "%s: there is no process %s\n", command, options.process.c_str());
  for (const int pid : pids) {
    std::string why;
    auto page = PageFile::open(pid, &why);
    if (!page) {
      complain(command, pid, why);
      continue;
    }
    Watched watched(std::move(*page), options.wait_ms);
    why = watched.start(options.bytes);
    if (!why.empty()) {
      complain(command, pid, why);
      continue;
    }
    all.push_back(std::move(watched));
  }
  if (all.empty()) return std::nullopt;
  if (options.enter) fprintf(stderr, "%s: Enter ends the watch\n", command);
  Report report;
  report.seconds = wait_for(options.seconds, options.enter, all);
  for (Watched& each : all) {
    std::string why;
    const auto profile = each.finish(options.growth, &why);
    if (!profile) {
      complain(command, each.pid(), why);
      continue;
    }
    const std::string number = std::to_string(each.pid());
    add_profile(&report, *profile, "/proc/" + number + "/root",
                printable(profile->program) + " (" + number + ")");
  }
  if (report.processes.empty()) return std::nullopt;
  return report;
}

}  // namespace hummock::tool
