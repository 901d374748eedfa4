#include "leaks_options.h"

#include <CLI/CLI.hpp>
#include <cstring>

#include "profile_options.h"
#include "values.h"

namespace hummock::tool {
namespace {

const char kLeaksNotes[] =
    "Examples:\n"
    "  hummock leaks -- ./server                what nothing points to when it ends\n"
    "  hummock leaks --fail --suppressions known.supp -- ./tests\n"
    "  hummock leaks 1234 --after 30s           what was allocated within 30 s and is still live\n"
    "\n"
    "A file of suppressions has LSan's lines (leak:name) or valgrind's blocks (fun:, obj:, ...).\n"
    "\n"
    "Exit status: that of the program, or 0; with --fail 23 if there are leaks; 1 something went wrong; 2 "
    "wrong "
    "use; 125 to 127 as hummock run.";

std::string what_is_wrong(const LeaksOptions& options) {
  const bool program = options.program;
  if (options.command.empty()) return "name a process, or a program after --";
  if (!program && options.command.size() > 1) return "one process, or a program after --";
  if (program && options.after > 0) return "--after is for processes";
  if (program && options.bytes != 0) return "--bytes is for processes: in a program every block is sampled";
  if (!program && !options.suppressions.empty()) return "--suppressions is for programs";
  if (!program && options.reachable) return "--reachable is for programs";
  return "";
}

}  // namespace

void add_leaks_options(CLI::App* command, LeaksOptions* options) {
  command->add_option(
      "words", options->command,
      "a process (its number or its program's name), or after -- a program and its arguments");
  takes_time(
      command->add_option("--after", options->after,
                          "look again at a process after this time, as 30s or 5m; without it, at Enter"),
      TimeUnit::kSeconds, 0.001, kLongest);
  takes_size(command->add_option("--bytes", options->bytes,
                                 "for a process: bytes from one sample to the next; 1: every block"),
             kMostSampleBytes);
  command->add_option("--suppressions", options->suppressions, "known leaks, which are not reported")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_flag("--fail", options->fail, "end with status 23 if there are leaks");
  command->add_flag("--reachable", options->reachable, "also show what is still reachable, which is no leak");
  takes_count(command->add_option("--top", options->top, "stacks to print; 0: all"))->capture_default_str();
  add_wait(command, &options->wait_ms);
  command->add_option("--lib", options->library, "the library to preload")->type_name("FILE");
  command->footer(kLeaksNotes);
}

std::optional<int> read_leaks_options(int count, char** arguments, LeaksOptions* options) {
  CLI::App app("blocks that nothing points to when a program ends, or growth of a process", "hummock leaks");
  add_leaks_options(&app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fprintf(stderr, "hummock leaks: %s\n", plain_words(error).c_str());
    return 2;
  }
  options->program = names_program(count, arguments);
  const std::string wrong = what_is_wrong(*options);
  if (wrong.empty()) return std::nullopt;
  fprintf(stderr, "hummock leaks: %s\n", wrong.c_str());
  return 2;
}

LeaksCommand::LeaksCommand(CLI::App& app) {
  command_ = app.add_subcommand(
      "leaks", "show which blocks nothing points to when a program ends, or what grows in a process");
  add_leaks_options(command_, &options_);
}

bool LeaksCommand::chosen() const {
  return command_->parsed();
}

int LeaksCommand::run(int count, char** arguments) {
  std::vector<std::string> words = {"hummock-leaks"};
  int i = 1;
  while (i < count && strcmp(arguments[i], "leaks") != 0) ++i;
  for (++i; i < count; ++i) words.emplace_back(arguments[i]);
  return become(words);
}

}  // namespace hummock::tool
