#include "run_cli.h"

#include <cstdio>

#include "option_text.h"
#include "outputs.h"
#include "usage.h"

namespace hummock::tool {
namespace {

// As the library would say it, but of the argument that the user wrote.
std::string wrong_argument(const char* argument, const char* option, const std::string& value) {
  int64_t number;
  const std::string wrong = value.empty() ? "" : wrong_value(*find_option(option), value, &number);
  return wrong.empty() ? "" : argument + (" " + wrong);
}

std::string wrong_file(const char* argument, const std::string& file) {
  const std::string why = not_written_over(file);
  return why.empty() ? "" : std::string(argument) + "=" + file + ": it " + why;
}

std::string what_is_wrong(const RunOptions& options) {
  const std::string& reserve = options.space_reserve;
  if (!reserve.empty() && reserve != "start" && reserve != "firstalloc")
    return "--reserve is start or firstalloc, not " + reserve;
  for (const std::string& wrong :
       {wrong_argument("--decay", "decay_ms", options.decay_ms),
        wrong_argument("--initial", "space_initial", options.space_initial),
        wrong_argument("--expand", "space_expand", options.space_expand), wrong_file("--log", options.log),
        wrong_file("--profile", options.profile)})
    if (!wrong.empty()) return wrong;
  return "";
}

}  // namespace

RunCommand::RunCommand(CLI::App& app) {
  RunOptions& options = options_;
  command_ = app.add_subcommand("run", "run a program with Hummock as its malloc");
  command_->add_flag("--checked", options.checked, "find misuse of memory: quarantine, canaries, poison");
  command_->add_flag("--verbose", options.verbose, "print at start which options are in effect");
  command_->add_flag("--stats", options.stats, "print statistics when the program ends");
  // Flags: an option would take the next word, the program, for its file.
  command_->add_flag(std::string("--profile{") + RunOptions::kDefaultProfile + "}", options.profile,
                     "show at its end which functions allocated its memory, or write that to FILE");
  command_->add_flag(std::string("--log{") + RunOptions::kDefaultLog + "}", options.log,
                     "log what memory comes from the system and goes back, in malloc_<process>.log or FILE");
  command_
      ->add_option("--decay", options.decay_ms,
                   "time until free memory returns to the system, as 100ms or 2s; a number alone: ms")
      ->type_name("TIME");
  command_->add_option("--conf", options.conf, "options as key:value,key:value")->type_name("OPTIONS");
  command_->add_option("--lib", options.library, "the library to preload")->type_name("FILE");
  auto* initial = command_
                      ->add_option("--initial", options.space_initial,
                                   "serve malloc only from a deterministic space of this size")
                      ->type_name("SIZE");
  const auto of_space = [&](CLI::Option* option) { return option->needs(initial); };
  of_space(
      command_->add_option("--expand", options.space_expand, "bytes by which the space expands; 0: never"))
      ->type_name("SIZE");
  of_space(command_->add_option("--reserve", options.space_reserve, "when the space takes its memory"))
      ->type_name("start|firstalloc");
  of_space(command_->add_flag("--lock", options.space_lock, "keep the space in memory"));
  of_space(command_->add_flag("--huge-pages", options.space_huge_pages, "put the space on huge pages"));
  of_space(command_->add_flag("--zero", options.space_zero, "make malloc hand out zeros"));
  command_->add_option("program", options.command, "the program and its arguments, after --")->required();
  command_->prefix_command(false)->positionals_at_end()->footer(kRunNotes);
}

int RunCommand::run() const {
  const std::string wrong = what_is_wrong(options_);
  if (wrong.empty()) return tool::run(options_);
  fprintf(stderr, "hummock run: %s\n", wrong.c_str());
  return kCannotOverride;
}

}  // namespace hummock::tool
