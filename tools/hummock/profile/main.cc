// hummock profile: a program of its own, so that no other command needs what it is linked to.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>

#include "session.h"

namespace {

using namespace hummock::tool;

unsigned columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 120;
  return size.ws_col >= 60 ? size.ws_col : 120;
}

void write_files(const ProfileOptions& options, const Report& report, View view) {
  if (!options.pprof.empty()) write_pprof(report, view, options.pprof);
  if (!options.folded.empty()) write_folded(report, view, options.folded);
  if (!options.speedscope.empty()) write_speedscope(report, view, options.speedscope);
  if (!options.html.empty()) write_html(report, view, options.html);
}

int compare(const ProfileOptions& options) {
  const Report before = read_pprof(options.diff[0]), after = read_pprof(options.diff[1]);
  const View view = options.view == View::automatic ? View::live : options.view;
  fputs(difference(before, after, view, options.top, columns()).c_str(), stdout);
  return 0;
}

// A program writes to standard output itself: its table goes to standard error.
int profile(ProfileOptions* options, bool program) {
  int status = 0;
  if (!program) options->process = options->command.front();
  const auto report = program ? run_program(*options, &status) : watch_processes(*options);
  if (!report) return program ? status : 1;
  const View usual = program ? View::peak : View::live;
  const View view = options->view == View::automatic ? usual : options->view;
  write_files(*options, *report, view);
  if (!options->quiet)
    fputs(table(*report, view, options->top, columns()).c_str(), program ? stderr : stdout);
  return status;
}

// What stands after -- is a program.
bool names_program(int count, char** arguments) {
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--") return true;
  return false;
}

int dispatch(int count, char** arguments) {
  CLI::App app("where a process asked for the memory that it holds", "hummock profile");
  ProfileOptions options;
  add_profile_options(&app, &options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fprintf(stderr, "hummock profile: %s\n", error.what());
    return 2;
  }
  const bool program = names_program(count, arguments);
  std::string wrong = check_profile_options(app, &options);
  if (wrong.empty() && !program && options.command.size() > 1) wrong = "one process, or a program after --";
  if (wrong.empty() && program && options.seconds_given) wrong = "--seconds is for processes";
  if (!wrong.empty()) {
    fprintf(stderr, "hummock profile: %s\n", wrong.c_str());
    return 2;
  }
  return options.diff.empty() ? profile(&options, program) : compare(options);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return dispatch(count, arguments);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock profile: %s\n", error.what());
  }
  return 1;
}
