#include "run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "child.h"
#include "preload.h"
#include "profile_options.h"
#include "program.h"
#include "promise.h"

namespace hummock::tool {
namespace {

void say(const std::string& subject, const std::string& what) {
  fprintf(stderr, "hummock run: %s: %s\n", subject.c_str(), what.c_str());
}

void set(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
}

void set_preload(const std::string& library) {
  const char* before = getenv("LD_PRELOAD");
  set("LD_PRELOAD", before != nullptr && *before != 0 ? library + ":" + before : library);
}

void set_options(const RunOptions& options) {
  if (options.checked) set("HUMMOCK_CHECKED", "on");
  if (options.verbose) set("HUMMOCK_VERBOSE", "on");
  if (options.stats) set("HUMMOCK_STATS", "exit");
  if (!options.log.empty()) {
    // A name without a dot or a slash could be a word of the option.
    const bool plain = options.log.find_first_of("/.%") == std::string::npos;
    set("HUMMOCK_LOG", (plain ? "./" : "") + options.log);
  }
  if (!options.decay_ms.empty()) set("HUMMOCK_DECAY_MS", options.decay_ms);
  if (!options.conf.empty()) set("HUMMOCK_CONF", options.conf);
  if (!options.space_initial.empty()) set("HUMMOCK_SPACE_INITIAL", options.space_initial);
  if (!options.space_expand.empty()) set("HUMMOCK_SPACE_EXPAND", options.space_expand);
  std::string with;
  if (!options.space_reserve.empty() && options.space_reserve != "start") with += "+" + options.space_reserve;
  if (options.space_lock) with += "+lock";
  if (options.space_zero) with += "+zero";
  if (options.space_huge_pages) with += "+huge";
  if (!with.empty()) set("HUMMOCK_SPACE_WITH", with.substr(1));
}

// Whether this command runs the program for `hummock profile` or `record`; programs that it starts are not.
std::string watched() {
  const char* what = getenv(kWatched);
  const std::string said = what != nullptr ? what : "";
  unsetenv(kWatched);
  return said == "profile" || said == "recording" ? said : "";
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
  if (!options.profile.empty()) {
    // It keeps the memory that the profile stands in, and calls this command again.
    set_options(options);
    run_profiled(options.profile == RunOptions::kDefaultProfile ? "" : options.profile, options.library,
                 options.command);
    return kCannotOverride;
  }
  const std::string library = options.library.empty() ? find_library() : options.library;
  if (library.empty()) {
    say(options.command.front(), "libhummock.so.1 was not found; name it with --lib");
    return kCannotOverride;
  }
  if (access(library.c_str(), R_OK) != 0) {
    say("--lib " + library, errno == ENOENT ? "no such file" : strerror(errno));
    return kCannotOverride;
  }
  const Program program = inspect(options.command.front());
  const std::string name = subject_of(options.command.front(), program);
  const std::string reason = obstacle(program);
  if (!reason.empty()) {
    const std::string what = advice(program);
    say(name, reason + (what.empty() ? "" : "; " + what));
    return program.error != 0 ? program.error : kCannotOverride;
  }
  std::string preload;
  try {
    preload = preloadable(std::filesystem::absolute(library).string());
  } catch (const std::exception& error) {
    say(name, error.what());
    return kCannotOverride;
  }
  std::string why = trial(preload);
  if (why.empty()) why = listed(program, preload);
  if (!why.empty()) {
    say(name, library + " cannot be preloaded: " + why);
    return kCannotOverride;
  }
  set_options(options);
  why = broken_promise(program, watched());
  if (!why.empty()) {
    say(name, why);
    return kCannotOverride;
  }
  if (const std::string warning = doubt(program); !warning.empty()) say(name, warning);
  set_preload(preload);
  // No process stays between the program and who started it: it keeps the number, the signals and the
  // terminal.
  exec(options.command.front(), options.command);
  const int error = errno;
  say(name, strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace hummock::tool
