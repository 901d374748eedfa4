// The command line tool.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "bench.h"
#include "doctor.h"
#include "figures_cli.h"
#include "hummock/hummock.h"
#include "log_cli.h"
#include "program.h"
#include "run.h"
#include "spaces.h"
#include "symbolize.h"

namespace {

using namespace hummock::tool;

#define HUMMOCK_TEXT_OF(x) #x
#define HUMMOCK_TEXT(x) HUMMOCK_TEXT_OF(x)
constexpr const char* kVersion = HUMMOCK_TEXT(HUMMOCK_VERSION_MAJOR) "." HUMMOCK_TEXT(
    HUMMOCK_VERSION_MINOR) "." HUMMOCK_TEXT(HUMMOCK_VERSION_PATCH);

int check(const std::string& name) {
  const Program program = inspect(name);
  const std::string reason = obstacle(program);
  const std::string warning = doubt(program);
  printf("%s: %s\n", program.path.c_str(),
         !reason.empty()    ? reason.c_str()
         : !warning.empty() ? warning.c_str()
                            : "Hummock can be preloaded");
  return reason.empty() ? 0 : 1;
}

int dispatch(int count, char** arguments) {
  CLI::App app("Hummock, a memory allocator for multi-core machines");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);

  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "run a program with Hummock as its malloc");
  run_command->add_flag("--checked", options.checked, "find misuse of memory: quarantine, canaries, poison");
  run_command->add_flag("--verbose", options.verbose, "print at start what is in effect");
  run_command->add_flag("--stats", options.stats, "print statistics when the program ends");
  run_command
      ->add_option("--log", options.log,
                   "log what goes to and from the system, to malloc_<process>.log or FILE")
      ->expected(0, 1)
      ->default_str(RunOptions::kDefaultLog)
      ->type_name("[=FILE]");
  run_command->add_option("--decay", options.decay_ms, "milliseconds until free memory goes back");
  run_command->add_option("--conf", options.conf, "options as key:value,key:value");
  run_command->add_option("--lib", options.library, "the library to preload");
  // The library says what of these values it does not understand: it knows them best.
  auto* initial = run_command->add_option("--initial", options.space_initial,
                                          "serve malloc from a deterministic space of this size alone");
  const auto of_space = [&](CLI::Option* option) { option->needs(initial); };
  of_space(run_command->add_option("--expand", options.space_expand, "bytes by which it expands; 0: never"));
  of_space(run_command->add_option("--reserve", options.space_reserve,
                                   "when it gets its memory: start, firstalloc"));
  of_space(run_command->add_flag("--lock", options.space_lock, "keep it in memory"));
  of_space(run_command->add_flag("--huge-pages", options.space_huge_pages, "in huge pages"));
  of_space(run_command->add_flag("--zero", options.space_zero, "malloc hands out zeros"));
  run_command->add_option("command", options.command, "the program and its arguments, after --")->required();
  run_command->prefix_command(false)->positionals_at_end();

  std::string name;
  CLI::App* check_command = app.add_subcommand("check", "say whether a program can run on Hummock");
  check_command->add_option("program", name, "its name or path")->required();
  SpacesOptions watched;
  CLI::App* spaces_command = app.add_subcommand("spaces", "list the deterministic spaces of a process");
  spaces_command->add_option("pid", watched.pid, "its number")->required()->check(CLI::PositiveNumber);
  spaces_command->add_flag("--json", watched.json, "as JSON");
  spaces_command->add_flag("--map", watched.map, "draw how full each part is");
  spaces_command->add_option("--sort", watched.sort, "by this column")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kSpaceColumns), std::end(kSpaceColumns))));
  spaces_command->add_option("--every", watched.every, "look again after so many seconds, until it ends");
  CLI::App* symbolize_command = app.add_subcommand(
      "symbolize", "put functions, files and lines into reports of checked mode, from standard input");
  CLI::App* version_command = app.add_subcommand("version", "print the version");

  const LogCommand log_command(app);
  const DoctorCommand doctor_command(app);
  const FiguresCommands figures_commands(app);
  BenchCommand bench_command(app);

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    const bool fails = error.get_exit_code() != 0;
    if (!fails || count < 2 || strcmp(arguments[1], "run") != 0) return app.exit(error);
    fprintf(stderr, "hummock run: %s\n", error.what());
    return kCannotOverride;
  }
  if (*version_command) {
    printf("hummock %s\n", kVersion);
    return 0;
  }
  if (*symbolize_command) return symbolize();
  if (*spaces_command) return spaces(watched);
  if (doctor_command.chosen()) return doctor_command.run();
  if (figures_commands.chosen()) return figures_commands.run();
  if (log_command.chosen()) return log_command.run();
  if (bench_command.chosen()) return bench_command.run(count, arguments);
  return *check_command ? check(name) : run(options);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return dispatch(count, arguments);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock: %s\n", error.what());
  }
  return 1;
}
