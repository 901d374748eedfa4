#include "run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "preload.h"
#include "program.h"

namespace hummock::tool {
namespace {

pid_t child;

void pass_on(int signal) {
  if (child > 0) kill(child, signal);
}

void say(const std::string& program, const std::string& what) {
  fprintf(stderr, "hummock run: %s: %s\n", program.c_str(), what.c_str());
}

void set(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
}

void set_environment(const RunOptions& options, const std::string& library) {
  const char* before = getenv("LD_PRELOAD");
  set("LD_PRELOAD", before != nullptr && *before != 0 ? library + ":" + before : library);
  if (options.checked) set("HUMMOCK_CHECKED", "on");
  if (options.verbose) set("HUMMOCK_VERBOSE", "on");
  if (options.stats) set("HUMMOCK_STATS", "exit");
  if (!options.log.empty()) {
    set("HUMMOCK_LOG", "region");
    set("HUMMOCK_LOG_FILE", options.log);
  }
  if (!options.decay_ms.empty()) set("HUMMOCK_DECAY_MS", options.decay_ms);
  if (!options.conf.empty()) set("HUMMOCK_CONF", options.conf);
  if (!options.space_initial.empty()) set("HUMMOCK_SPACE_INITIAL", options.space_initial);
  if (!options.space_expand.empty()) set("HUMMOCK_SPACE_EXPAND", options.space_expand);
  if (!options.space_reserve.empty()) set("HUMMOCK_SPACE_RESERVE", options.space_reserve);
  if (options.space_lock) set("HUMMOCK_SPACE_LOCK", "on");
  if (options.space_huge_pages) set("HUMMOCK_SPACE_HUGE", "require");
  if (options.space_zero) set("HUMMOCK_SPACE_ZERO", "on");
}

// The library writes one byte to this pipe when it starts: '1' when the process's malloc is its own.
void announce_pipe(int end) {
  struct stat status;
  fstat(end, &status);
  set("HUMMOCK_RUN_NOTIFY", std::to_string(end) + ":" + std::to_string(status.st_ino));
}

int wait_for_child() {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string find_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place :
       {".", "../lib", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu", "../lib64"}) {
    for (const char* name : {"libhummock.so.1", "libhummock.so"}) {
      const fs::path candidate = here / place / name;
      if (fs::exists(candidate, error)) return fs::canonical(candidate, error).string();
    }
  }
  return "";
}

int run(const RunOptions& options) {
  const std::string& name = options.command.front();
  const std::string library = options.library.empty() ? find_library() : options.library;
  if (library.empty() || access(library.c_str(), R_OK) != 0) {
    say(name, "libhummock.so.1 was not found; name it with --lib");
    return kCannotOverride;
  }
  const Program program = inspect(name);
  const std::string reason = obstacle(program);
  if (!reason.empty()) {
    say(name, reason);
    return program.error != 0 ? program.error : kCannotOverride;
  }
  std::string preload;
  try {
    preload = preloadable(std::filesystem::absolute(library).string());
  } catch (const std::exception& error) {
    say(name, error.what());
    return kCannotOverride;
  }
  if (const std::string why = trial(preload); !why.empty()) {
    say(name, library + " cannot be preloaded: " + why);
    return kCannotOverride;
  }
  if (const std::string warning = doubt(program); !warning.empty()) say(name, warning);

  int ends[2];
  if (pipe(ends) != 0) {
    say(name, strerror(errno));
    return kCannotOverride;
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  set_environment(options, preload);
  announce_pipe(ends[1]);
  std::vector<char*> arguments;
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    say(name, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }
  close(ends[1]);
  if (child < 0) {
    say(name, strerror(errno));
    return kCannotOverride;
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(signal, pass_on);
  char answer = 0;
  ssize_t got;
  do {
    got = read(ends[0], &answer, 1);  // ends when the library answers, or nobody has the pipe any more
  } while (got < 0 && errno == EINTR);
  close(ends[0]);
  const int status = wait_for_child();
  // The library itself says what is not to be had, and ends the program so.
  if (got != 1 && status == kCannotOverride) return status;
  if (got != 1) {
    say(name, "the program ended without Hummock");
    return status != 0 ? status : kCannotOverride;
  }
  if (answer != '1') {
    say(name, "Hummock was loaded but is not the program's malloc (the program defines its own)");
  }
  return status;
}

}  // namespace hummock::tool
