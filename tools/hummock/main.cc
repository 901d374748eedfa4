// The command line tool.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "bench/bench.h"
#include "check.h"
#include "completion.h"
#include "doctor.h"
#include "figures_cli.h"
#include "hummock/hummock.h"
#include "leaks_options.h"
#include "log_cli.h"
#include "outputs.h"
#include "profile_options.h"
#include "run_cli.h"
#include "spaces.h"
#include "symbolize.h"
#include "trace_options.h"
#include "usage.h"
#include "values.h"

namespace {

using namespace hummock::tool;

#define HUMMOCK_TEXT_OF(x) #x
#define HUMMOCK_TEXT(x) HUMMOCK_TEXT_OF(x)
constexpr const char* kVersion = "hummock " HUMMOCK_TEXT(HUMMOCK_VERSION_MAJOR) "." HUMMOCK_TEXT(
    HUMMOCK_VERSION_MINOR) "." HUMMOCK_TEXT(HUMMOCK_VERSION_PATCH);

// A flag that may have a value has one without: "--log{malloc.log}" to CLI11, "--log[=FILE]" to people.
class Formatter : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const size_t value = name.find('{');
    return value == std::string::npos ? name : name.substr(0, value) + "[=FILE]";
  }
  // The usage line says which words must be there, and the description what they are.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) return option->get_expected_max() > 1 ? " ..." : "";
    return CLI::Formatter::make_option_opts(option);
  }
};

// "help run" is another way to say "run --help".
std::vector<std::string> words_of(int count, char** arguments) {
  std::vector<std::string> words = {"hummock"};
  for (int i = 1; i < count; ++i) words.emplace_back(arguments[i]);
  if (count < 2) words.emplace_back("--help");
  if (words[1] != "help" || (words.size() > 2 && words[2][0] == '-')) return words;
  words.erase(words.begin() + 1);
  words.emplace_back("--help");
  return words;
}

int dispatch(int count, char** arguments) {
  CLI::App app("Hummock, a memory allocator for multi-core machines", "hummock");
  app.formatter(std::make_shared<Formatter>());
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.set_version_flag("-v,--version", kVersion, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  app.footer(kExamples);

  const RunCommand run_command(app);
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
  std::string subject;
  app.add_subcommand("help", "print the help of a command")->add_option("command", subject, "its name");

  const LogCommand log_command(app);
  const DoctorCommand doctor_command(app);
  const FiguresCommands figures_commands(app);
  ProfileCommand profile_command(app);
  TraceCommands trace_commands(app);
  LeaksCommand leaks_command(app);
  BenchCommand bench_command(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->group("Commands");
    for (CLI::App* inner : command->get_subcommands(nullptr))
      if (!inner->get_group().empty()) inner->group("Commands");
    refuse_dashes(command);
    if (command->get_footer() != kExamples) continue;  // it has its own
    command->footer(examples_of(command->get_name()));
    for (CLI::App* inner : command->get_subcommands(nullptr)) inner->footer("");
  }

  const std::vector<std::string> words = words_of(count, arguments);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));  // it takes them from the end
  } catch (const CLI::ParseError& error) {
    const bool unknown = app.get_subcommands().empty() && words[1][0] != '-';
    if (error.get_exit_code() == 0 && !unknown) return app.exit(error);
    fprintf(stderr, "%s\n", explain(app, words, error).c_str());
    return words[1] == "run" ? kCannotOverride : kUsage;
  }
  if (*version_command) {
    puts(kVersion);
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
  return *check_command ? check(name) : run_command.run();
}

// What was printed and did not arrive, as on a full disk, is an error of its own.
int finish(int status) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0 && std::cout.flush()) return status;
  fprintf(stderr, "hummock: standard output cannot be written: %s\n", strerror(errno));
  return status != 0 ? status : 1;
}

}  // namespace

int main(int count, char** arguments) {
  guard_standard_streams();
  try {
    return finish(dispatch(count, arguments));
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock: %s\n", error.what());
  }
  return 1;
}
