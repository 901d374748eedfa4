// The command line tool.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "bench.h"
#include "check.h"
#include "completion.h"
#include "doctor.h"
#include "figures_cli.h"
#include "hummock/hummock.h"
#include "leaks_options.h"
#include "log_cli.h"
#include "profile_options.h"
#include "run.h"
#include "spaces.h"
#include "symbolize.h"
#include "trace_options.h"
#include "usage.h"
#include "values.h"

namespace {

using namespace hummock::tool;

#define HUMMOCK_TEXT_OF(x) #x
#define HUMMOCK_TEXT(x) HUMMOCK_TEXT_OF(x)
constexpr const char* kVersion = HUMMOCK_TEXT(HUMMOCK_VERSION_MAJOR) "." HUMMOCK_TEXT(
    HUMMOCK_VERSION_MINOR) "." HUMMOCK_TEXT(HUMMOCK_VERSION_PATCH);

int dispatch(int count, char** arguments) {
  CLI::App app("Hummock, a memory allocator for multi-core machines");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.footer(kExamples);

  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "run a program with Hummock as its malloc");
  run_command->add_flag("--checked", options.checked, "find misuse of memory: quarantine, canaries, poison");
  run_command->add_flag("--verbose", options.verbose, "print at start which options are in effect");
  run_command->add_flag("--stats", options.stats, "print statistics when the program ends");
  run_command
      ->add_option("--profile", options.profile,
                   "show at its end which functions allocated its memory, or write that to FILE")
      ->expected(0, 1)
      ->default_str(RunOptions::kDefaultProfile)
      ->option_text("[=FILE]");
  run_command
      ->add_option("--log", options.log,
                   "log what memory comes from the system and goes back, in malloc_<process>.log or FILE")
      ->expected(0, 1)
      ->default_str(RunOptions::kDefaultLog)
      ->option_text("[=FILE]");
  run_command
      ->add_option("--decay", options.decay_ms,
                   "time until free memory returns to the system, as 100ms or 2s; a number alone: ms")
      ->type_name("TIME");
  run_command->add_option("--conf", options.conf, "options as key:value,key:value")->type_name("OPTIONS");
  run_command->add_option("--lib", options.library, "the library to preload")->type_name("FILE");
  // The library says what of these values it does not understand: it knows them best.
  auto* initial = run_command
                      ->add_option("--initial", options.space_initial,
                                   "serve malloc only from a deterministic space of this size")
                      ->type_name("SIZE");
  const auto of_space = [&](CLI::Option* option) { return option->needs(initial); };
  of_space(
      run_command->add_option("--expand", options.space_expand, "bytes by which the space expands; 0: never"))
      ->type_name("SIZE");
  of_space(run_command->add_option("--reserve", options.space_reserve,
                                   "when the space takes its memory: start or firstalloc"))
      ->type_name("WORD");
  of_space(run_command->add_flag("--lock", options.space_lock, "keep the space in memory"));
  of_space(run_command->add_flag("--huge-pages", options.space_huge_pages, "put the space on huge pages"));
  of_space(run_command->add_flag("--zero", options.space_zero, "make malloc hand out zeros"));
  run_command->add_option("program", options.command, "the program and its arguments, after --")->required();
  run_command->prefix_command(false)->positionals_at_end()->footer(kRunNotes);

  std::string name;
  CLI::App* check_command =
      app.add_subcommand("check", "say whether a program can run on Hummock, or whether a process does");
  check_command->add_option("program", name, "its name or path, or the number of a process")->required();
  check_command->footer(kCheckNotes);
  SpacesOptions watched;
  CLI::App* spaces_command = app.add_subcommand("spaces", "list the deterministic spaces of a process");
  spaces_command
      ->add_option("process", watched.which,
                   "its number, its program's name, or a cgroup below /sys/fs/cgroup")
      ->required();
  spaces_command->add_flag("--json", watched.json, "as JSON");
  spaces_command->add_flag("--map", watched.map, "draw how full each part is");
  takes_one_of(spaces_command->add_option(
                   "--sort", watched.sort,
                   "by this column: name, size, used, free, peak, largest, ranges, cache, live, failures"),
               {std::begin(kSpaceColumns), std::end(kSpaceColumns)});
  takes_time(spaces_command->add_option(
                 "--every", watched.every,
                 "repeat after this time, as 500ms or 2s; a number alone: seconds; until it ends"),
             TimeUnit::kSeconds, 0.001);
  CLI::App* symbolize_command = app.add_subcommand(
      "symbolize", "add functions, files and lines to reports of checked mode, from standard input");
  std::string shell;
  CLI::App* completion_command = app.add_subcommand("completion", "print the completion of a shell");
  takes_one_of(completion_command->add_option("shell", shell, "bash, zsh or fish"),
               {std::begin(kShells), std::end(kShells)})
      ->required();
  CLI::App* version_command = app.add_subcommand("version", "print the version");

  const LogCommand log_command(app);
  const DoctorCommand doctor_command(app);
  const FiguresCommands figures_commands(app);
  ProfileCommand profile_command(app);
  TraceCommands trace_commands(app);
  LeaksCommand leaks_command(app);
  BenchCommand bench_command(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_footer() != kExamples) continue;  // it has its own
    command->footer(examples_of(command->get_name()));
    for (CLI::App* inner : command->get_subcommands(nullptr)) inner->footer("");
  }

  if (count < 2) {
    std::cout << app.help();
    return 0;
  }
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fprintf(stderr, "%s\n", explain(app, count, arguments, error).c_str());
    return count > 1 && strcmp(arguments[1], "run") == 0 ? kCannotOverride : kUsage;
  }
  if (*version_command) {
    printf("hummock %s\n", kVersion);
    return 0;
  }
  if (*symbolize_command) return symbolize();
  if (*completion_command) {
    print_completion(app, shell);
    return 0;
  }
  if (*spaces_command) return spaces(watched);
  if (doctor_command.chosen()) return doctor_command.run();
  if (figures_commands.chosen()) return figures_commands.run();
  if (log_command.chosen()) return log_command.run();
  if (profile_command.chosen()) return profile_command.run(count, arguments);
  if (trace_commands.chosen()) return trace_commands.run(count, arguments);
  if (leaks_command.chosen()) return leaks_command.run(count, arguments);
  if (bench_command.chosen()) return bench_command.run(count, arguments);
  return *check_command ? check(name) : run(options);
}

// What was printed and did not arrive, as on a full disk, is an error of its own.
int finish(int status) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0 && std::cout.flush()) return status;
  fprintf(stderr, "hummock: standard output cannot be written: %s\n", strerror(errno));
  return status != 0 ? status : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return finish(dispatch(count, arguments));
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock: %s\n", error.what());
  }
  return 1;
}
