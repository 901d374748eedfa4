#include "figures_cli.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "base/option_value.h"
#include "figures.h"
#include "figures_text.h"
#include "near.h"
#include "option_text.h"
#include "processes.h"
#include "top.h"
#include "usage.h"
#include "values.h"

namespace hummock::tool {
namespace {

constexpr unsigned kListWaitMs = 100;  // of ps, for all processes

int complain(const char* command, const std::string& what) {
  fprintf(stderr, "hummock %s: %s\n", command, what.c_str());
  return 1;
}

int refuse(const char* command, const std::string& what) {
  complain(command, what);
  return kUsage;
}

int complain(const char* command, int pid, const std::string& what) {
  return complain(command, "process " + std::to_string(pid) + ": " + what);
}

// Calls act(file) for the page of each process that is meant. 0, or 1 with lines that say what went wrong.
template <class Act>
int for_each_page(const char* command, const std::string& which, Act act) {
  const std::vector<int> pids = find_processes(which);
  if (pids.empty()) return complain(command, "there is no process " + which);
  int status = 0;
  for (const int pid : pids) {
    std::string why;
    const auto file = PageFile::open(pid, &why);
    status |= file ? act(*file) : complain(command, pid, why);
  }
  return status;
}

// A line each, or one for many that have the same reason, as a server's workers have.
void tell_silent(const std::vector<Silent>& silent) {
  constexpr size_t kMost = 3;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Silent& each : silent) by_reason[each.why].push_back(each.who);
  for (const auto& [why, all] : by_reason) {
    const bool many = all.size() > kMost;
    for (size_t i = 0; !many && i < all.size(); ++i) complain("ps", "process " + all[i] + ": " + why);
    if (many)
      complain("ps", std::to_string(all.size()) + " processes, the first of them " + all[0] + ": " + why);
  }
}

bool any_left(const std::string& which) {
  const std::vector<int> pids = find_processes(which);
  return std::any_of(pids.begin(), pids.end(), [](int pid) { return kill(pid, 0) == 0 || errno != ESRCH; });
}

int tell(const char* command, const PageFile& file, int result) {
  if (result == 0) return 0;
  if (result < 0) return complain(command, file.pid(), kNoAnswer);
  if (result == EBUSY)
    return complain(command, file.pid(), "somebody else is asking it, and does not finish");
  return complain(command, file.pid(), result == EPERM ? "it can only be set at start" : strerror(result));
}

}  // namespace

FiguresCommands::FiguresCommands(CLI::App& app) {
  ps_ = app.add_subcommand("ps", "list the processes that run on Hummock, with what their heaps hold");
  ps_->add_flag("--json", json_, "as JSON, one line for each process");
  top_ = app.add_subcommand("top", "watch the processes that run on Hummock, or one of them");
  top_->add_option("process", which_, "its number, its program's name, or a cgroup; else all");
  stats_ = app.add_subcommand("stats", "show what the heap of a running process holds");
  trim_ = app.add_subcommand("trim", "make a running process return its free memory");
  set_ = app.add_subcommand("set", "set an option of a running process");
  for (CLI::App* command : {stats_, trim_, set_}) {
    command->add_option("process", which_, "its number, its program's name, or a cgroup below /sys/fs/cgroup")
        ->required();
    add_wait(command, &wait_ms_);
  }
  auto* json = stats_->add_flag("--json", json_, "as JSON, one line for each process");
  stats_->add_flag("--prometheus", prometheus_, "as text for Prometheus")->excludes(json);
  for (CLI::App* command : {stats_, top_}) {
    takes_time(command->add_option("--every", every_,
                                   "repeat after this time, as 500ms or 2s; a number alone: seconds"),
               TimeUnit::kSeconds, 0.001);
  }
  export_ = app.add_subcommand("export", "serve the figures of all processes to Prometheus");
  export_->add_option("--listen", listen_, "address and port")->type_name("ADDRESS")->capture_default_str();
  set_->add_option("assignment", assignment_, "option=value, as decay_ms=100")->required();
}

bool FiguresCommands::chosen() const {
  return *ps_ || *stats_ || *set_ || *trim_ || *export_ || *top_;
}

int FiguresCommands::run() const {
  if (*ps_) return ps();
  if (*stats_) return stats();
  if (*export_) return serve();
  if (*top_) return top(which_, every_ > 0 ? every_ : 2);
  return *set_ ? set() : trim();
}

int FiguresCommands::ps() const {
  std::vector<Silent> silent;
  const std::vector<int> pids = all_processes();
  if (pids.empty()) return complain("ps", "no process can be seen: is /proc mounted?");
  const std::vector<Snapshot> all = read_all(pids, kListWaitMs, &silent);
  tell_silent(silent);
  if (json_) {
    for (const Snapshot& snapshot : all) printf("%s\n", json_of(snapshot).c_str());
    return 0;
  }
  fputs(list(all).c_str(), stdout);
  if (all.empty() && silent.empty())
    fputs("hummock ps: no process runs on Hummock; start one with: hummock run -- PROGRAM\n", stderr);
  return 0;
}

int FiguresCommands::show_once(bool* any) const {
  std::vector<Snapshot> all;
  const int status = for_each_page("stats", which_, [&](const PageFile& file) {
    std::string why;
    const auto snapshot = file.read(wait_ms_, &why);
    if (!snapshot) return complain("stats", file.pid(), why);
    all.push_back(*snapshot);
    return 0;
  });
  if (prometheus_ && !all.empty()) fputs(metrics(all, Format::text).c_str(), stdout);
  for (const Snapshot& snapshot : all) {
    if (json_) printf("%s\n", json_of(snapshot).c_str());
    if (!json_ && !prometheus_) fputs(report(snapshot).c_str(), stdout);
  }
  fflush(stdout);
  *any = !all.empty();
  return status;
}

int FiguresCommands::stats() const {
  bool any = false;
  if (every_ <= 0) return show_once(&any);
  const bool clears = isatty(STDOUT_FILENO) != 0 && !json_ && !prometheus_;
  for (bool before = false;;) {
    if (clears) fputs("\033[H\033[2J", stdout);
    const int status = show_once(&any);
    // One that did not answer this time may do so the next.
    before = before || any;
    if (!before || !any_left(which_) || ferror(stdout) != 0) return status;
    std::this_thread::sleep_for(std::chrono::duration<double>(every_));
  }
}

// A program of its own, so that no other command needs what it is linked to.
int FiguresCommands::serve() const {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = self.parent_path() / "hummock-export";
  execl(program.c_str(), "hummock-export", listen_.c_str(), nullptr);
  return complain("export",
                  program + ": " + strerror(errno) + "; it is built where libcpp-httplib-dev is installed");
}

int FiguresCommands::trim() const {
  return for_each_page("trim", which_, [&](const PageFile& file) {
    const int result = file.request(HUMMOCK_REQUEST_TRIM, 0, 0, wait_ms_);
    if (result == EPERM) return complain("trim", file.pid(), "its decay_ms is never: it returns nothing");
    return tell("trim", file, result);
  });
}

// What is wrong with the command line alone comes first, then the process, then the option.
int FiguresCommands::set() const {
  const size_t equals = assignment_.find('=');
  if (equals == std::string::npos || equals == 0) return refuse("set", "write option=value, as decay_ms=100");
  std::string name = assignment_.substr(0, equals);
  const std::string value = assignment_.substr(equals + 1);
  if (!any_left(which_))
    return for_each_page("set", which_, [](const PageFile&) { return 0; });  // it says so
  const options::Option* option = find_option(name);
  if (option == nullptr)
    return refuse("set", "there is no option " + name + nearest_text(name, option_names()));
  name = option->name;
  int64_t number = 0;
  const bool file = option->kind == options::Kind::text &&
                    !parse_as_word(*option, base::trimmed({value.data(), value.size()}), &number);
  if (option->when == options::When::start || file) return refuse("set", name + " can only be set at start");
  const std::string wrong = wrong_value(*option, value, &number);
  if (!wrong.empty()) return refuse("set", "option " + name + " " + wrong);
  return for_each_page("set", which_, [&](const PageFile& file) {
    std::string why;
    const auto index = file.find_option(name, wait_ms_, &why);
    if (!index) return complain("set", file.pid(), why);
    return tell("set", file, file.request(HUMMOCK_REQUEST_SET, *index, number, wait_ms_));
  });
}

}  // namespace hummock::tool
