// hummock profile: a program of its own, so that no other command needs what it is linked to.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "outputs.h"
#include "run.h"
#include "session.h"

namespace {

using namespace hummock::tool;

void say(const std::exception& error) {
  fprintf(stderr, "hummock profile: %s\n", error.what());
}

unsigned columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 120;
  return size.ws_col >= 60 ? size.ws_col : 120;
}

using Write = void (*)(const Report&, View, const std::string& path);

bool write_file(Write write, const Report& report, View view, const std::string& path) {
  if (path.empty()) return true;
  try {
    write(report, view, path);
    return true;
  } catch (const std::exception& error) {
    say(error);
  }
  return false;
}

// Each of them, whatever becomes of the others. False: one could not be written.
bool write_files(const ProfileOptions& options, const Report& report, View view) {
  bool all = write_file(write_pprof, report, view, options.pprof);
  all &= write_file(write_folded, report, view, options.folded);
  all &= write_file(write_speedscope, report, view, options.speedscope);
  return write_file(write_html, report, view, options.html) && all;
}

int compare(const ProfileOptions& options) {
  const Report before = read_pprof(options.diff[0]), after = read_pprof(options.diff[1]);
  const View view = options.view == View::automatic ? View::live : options.view;
  fputs(difference(before, after, view, options.top, columns()).c_str(), stdout);
  return 0;
}

// A program writes to standard output itself: its table goes to standard error.
int profile(ProfileOptions* options) {
  check_writable({options->pprof, options->folded, options->speedscope, options->html});
  int status = 0;
  const bool program = options->program;
  if (!program) options->process = options->command.front();
  const auto report = program ? run_program(*options, &status) : watch_processes(*options);
  if (!report) return program ? status : 1;
  const View usual = program ? View::peak : View::live;
  const View view = options->view == View::automatic ? usual : options->view;
  FILE* shown = program ? stderr : stdout;
  if (!options->quiet) fputs(table(*report, view, options->top, columns()).c_str(), shown);
  fflush(shown);
  if (write_files(*options, *report, view)) return status;
  return program ? status_without_result(status) : 1;
}

int dispatch(int count, char** arguments) {
  ProfileOptions options;
  if (const auto status = read_profile_options(count, arguments, &options)) return *status;
  return options.diff.empty() ? profile(&options) : compare(options);
}

}  // namespace

int main(int count, char** arguments) {
  guard_standard_streams();
  try {
    return dispatch(count, arguments);
  } catch (const std::exception& error) {
    say(error);
  }
  return names_program(count, arguments) ? kCannotOverride : 1;
}
