#include "profile_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "child.h"
#include "values.h"

namespace hummock::tool {
namespace {

const char kNotes[] =
    "Examples:\n"
    "  hummock profile 1234                     which functions hold its memory, sampled for 10 s\n"
    "  hummock profile redis-server --churn     which functions allocate most\n"
    "  hummock profile 1234 --pprof heap.pb.gz  for pprof, Pyroscope, Parca\n"
    "  hummock profile --html heap.html -- ./server\n"
    "  hummock profile --diff before.pb.gz after.pb.gz\n"
    "\n"
    "The profile is complete however the program ends, even by SIGKILL.\n"
    "\n"
    "Exit status: that of the program, or 0; 1 something went wrong; 2 wrong use; 125 to 127 as hummock run.";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string what_is_wrong(const ProfileOptions& options, bool seconds_given) {
  if (options.view == View::lifetime && (!options.diff.empty() || options.writes_for_others()))
    return "--lifetime is for the table and for --html: other files cannot hold it";
  if (!options.diff.empty())
    return options.command.empty() ? "" : "--diff compares two files and nothing else";
  if (options.command.empty()) return "name a process, or a program after --";
  if (!options.program && options.command.size() > 1) return "one process, or a program after --";
  if (options.program && seconds_given) return "--seconds is for processes";
  return "";
}

}  // namespace

int become(const std::vector<std::string>& words) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = self.parent_path() / words.front();
  exec(program, words);
  fprintf(stderr,
          "hummock: %s: %s; it is built where libdw-dev, libprotozero-dev and zlib1g-dev are installed\n",
          program.c_str(), strerror(errno));
  return 1;
}

void add_profile_options(CLI::App* command, ProfileOptions* options) {
  command->add_option(
      "words", options->command,
      "a process (its number or its program's name), or after -- a program and its arguments");
  takes_time(command->add_option("--seconds", options->seconds,
                                 "how long to sample a process, as 30s or 5m; a number alone: seconds"),
             TimeUnit::kSeconds, 0, kLongest)
      ->default_str("10s");
  auto* live = command->add_flag("--live", options->flags.live, "what is live now (default for a process)");
  auto* churn =
      command->add_flag("--churn", options->flags.churn, "what was allocated meanwhile, freed or not");
  auto* peak =
      command->add_flag("--peak", options->flags.peak, "what was live at the peak (default for a program)");
  auto* lifetime = command->add_flag("--lifetime", options->flags.lifetime,
                                     "what was freed meanwhile, and how long it had lived");
  live->excludes(churn)->excludes(peak)->excludes(lifetime);
  churn->excludes(peak)->excludes(lifetime);
  peak->excludes(lifetime);
  takes_size(command->add_option("--bytes", options->bytes,
                                 "bytes from one sample to the next, on average; 1: every block"),
             kMostSampleBytes);
  takes_count(command->add_option("--top", options->top, "stacks to print; 0: all"))->capture_default_str();
  command->add_option("--pprof", options->pprof, "write a file for pprof")->type_name("FILE.pb.gz");
  command->add_option("--folded", options->folded, "write one line for each stack to this file")
      ->type_name("FILE");
  command->add_option("--speedscope", options->speedscope, "write a file for speedscope.app")
      ->type_name("FILE");
  command->add_option("--html", options->html, "write a page with a flame graph")->type_name("FILE");
  command->add_option("--diff", options->diff, "compare two files that --pprof wrote")
      ->expected(2)
      ->option_text("BEFORE AFTER");
  command->add_flag("--quiet", options->quiet, "print no table");
  add_wait(command, &options->wait_ms);
  command->add_option("--lib", options->library, "the library to preload")->type_name("FILE");
  command->footer(kNotes);
}

bool names_program(int count, char** arguments) {
  return std::find(arguments + 1, arguments + count, std::string("--")) != arguments + count;
}

std::optional<int> read_profile_options(int count, char** arguments, ProfileOptions* options) {
  CLI::App app("which functions allocated the memory that a process holds", "hummock profile");
  add_profile_options(&app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fprintf(stderr, "hummock profile: %s\n", plain_words(error).c_str());
    return 2;
  }
  options->program = names_program(count, arguments);
  options->view = options->flags.live       ? View::live
                  : options->flags.churn    ? View::churn
                  : options->flags.peak     ? View::peak
                  : options->flags.lifetime ? View::lifetime
                                            : View::automatic;
  const bool seconds_given = app.get_option("--seconds")->count() != 0;
  const std::string wrong = what_is_wrong(*options, seconds_given);
  if (wrong.empty()) return std::nullopt;
  fprintf(stderr, "hummock profile: %s\n", wrong.c_str());
  return 2;
}

ProfileCommand::ProfileCommand(CLI::App& app) {
  command_ = app.add_subcommand("profile", "show which functions allocated the memory that a process holds");
  add_profile_options(command_, &options_);
}

bool ProfileCommand::chosen() const {
  return command_->parsed();
}

int ProfileCommand::run(int count, char** arguments) {
  std::vector<std::string> words = {"hummock-profile"};
  int i = 1;
  while (i < count && strcmp(arguments[i], "profile") != 0) ++i;
  for (++i; i < count; ++i) words.emplace_back(arguments[i]);
  return become(words);
}

int run_profiled(const std::string& file, const std::string& library,
                 const std::vector<std::string>& command) {
  std::vector<std::string> words = {"hummock-profile"};
  if (!file.empty()) {
    const char* kind = ends_with(file, ".html")                                ? "--html"
                       : ends_with(file, ".json")                              ? "--speedscope"
                       : ends_with(file, ".folded") || ends_with(file, ".txt") ? "--folded"
                                                                               : "--pprof";
    words.insert(words.end(), {kind, file, "--quiet"});
  }
  if (!library.empty()) words.insert(words.end(), {"--lib", library});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return become(words);
}

}  // namespace hummock::tool
