#include "usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "near.h"
#include "values.h"

namespace hummock::tool {

const char kExamples[] =
    "Examples:\n"
    "  hummock run -- ./server --port 80        run a program on Hummock\n"
    "  hummock check ./server                   will it work? if not, what to do\n"
    "  hummock check 1234                       does process 1234 run on Hummock?\n"
    "  hummock run --checked -- ./server        find overflows and uses after free\n"
    "  hummock run --stats -- ./server          print statistics at the end\n"
    "  hummock profile 1234                     which functions hold its memory\n"
    "  hummock record -- ./server               record its calls; hummock replay finds its best allocator\n"
    "  hummock leaks -- ./server                which blocks nothing points to when it ends\n"
    "  hummock bench --quick                    compare Hummock with the other allocators found here\n"
    "  hummock doctor                           does this machine hold Hummock back?\n"
    "\n"
    "hummock COMMAND --help says more, and so does man hummock.";

// Of commands that say no more than this at the end of their help.
const std::pair<const char*, const char*> kExamplesOf[] = {
    {"log",
     "Examples:\n"
     "  hummock run --log -- ./server            writes malloc_<process>.log\n"
     "  hummock log malloc_4711.log              a timeline\n"
     "  hummock log malloc_4711.log --html log.html   the same with curves, for a browser"},
    {"spaces",
     "Examples:\n"
     "  hummock spaces 1234\n"
     "  hummock spaces 1234 --map --every 1s     how full each part is, each second"},
    {"symbolize",
     "Example:\n"
     "  hummock run --checked -- ./tests 2>report; hummock symbolize <report"},
    {"completion",
     "Examples:\n"
     "  eval \"$(hummock completion bash)\"\n"
     "  hummock completion fish > ~/.config/fish/completions/hummock.fish"},
    {"version", ""},
    {"doctor",
     "Examples:\n"
     "  hummock doctor\n"
     "  hummock doctor --json\n"
     "\n"
     "Exit status: 0; 1 there is something to change; 2 wrong use."},
    {"ps", "Examples:\n  hummock ps\n  hummock ps --json"},
    {"top", "Examples:\n  hummock top\n  hummock top redis-server"},
    {"stats",
     "Examples:\n"
     "  hummock stats 1234\n"
     "  hummock stats redis-server --every 2s\n"
     "  hummock stats 1234 --json"},
    {"trim", "Example:\n  hummock trim 1234"},
    {"set", "Example:\n  hummock set 1234 decay_ms=100"},
    {"export", "Example:\n  hummock export --listen 127.0.0.1:9188"},
    {"bench",
     "Examples:\n"
     "  hummock bench --quick --html report.html\n"
     "  hummock bench server frames --against jemalloc,mimalloc --threads 1,8\n"
     "  hummock bench --programs\n"
     "  hummock bench compare old.json new.json\n"
     "\n"
     "`make bench` in Hummock's source tree builds what runs the workloads. docs/benchmarks.md says how it "
     "measures."},
};

const char* examples_of(const std::string& command) {
  for (const auto& [name, examples] : kExamplesOf)
    if (command == name) return examples;
  return "";
}

const char kRunNotes[] =
    "Hummock checks the program, then becomes it: the process keeps its number and gets every signal.\n"
    "\n"
    "Examples:\n"
    "  hummock run -- ./server --port 80\n"
    "  hummock run --conf decay_ms:100,stats:exit -- ./server\n"
    "  hummock run --checked -- ./tests 2>report; hummock symbolize <report\n"
    "\n"
    "Exit status: the program's own. Before it starts: 125 Hummock cannot serve it, or an option is wrong; "
    "126 it cannot be executed; 127 it was not found.";

const char kCheckNotes[] =
    "Examples:\n"
    "  hummock check ./server\n"
    "  hummock check $(pidof server)\n"
    "\n"
    "Exit status: 0 yes; 1 no, or there is no such program; 2 wrong use.";

namespace {

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

// "a size" of an option whose type is SIZE.
std::string value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find('|') != std::string::npos) return "one of " + type;
  for (const auto& [kind, words] : {std::pair("SIZE", "a size"), std::pair("TIME", "a time"),
                                    std::pair("FILE", "a file"), std::pair("NUMBER", "a number")})
    if (type == kind) return words;
  return "a value";
}

// The option that the word names, with "=value" or, of one letter, its value behind it.
const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  return command.get_option_no_throw(word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2));
}

// How many of the words that follow are its value.
int words_after(const CLI::Option& option, const std::string& word) {
  const bool apart = word[1] == '-' ? word.find('=') == std::string::npos : word.size() == 2;
  return apart ? option.get_items_expected_min() : 0;
}

}  // namespace

void refuse_dashes(CLI::App* command) {
  const CLI::Validator no_dashes(
      [](const std::string& value) { return value == "--" ? "needs a value" : std::string(); }, "");
  for (CLI::Option* option : command->get_options())
    if (option->nonpositional() && option->get_items_expected_min() > 0) option->check(no_dashes);
  for (CLI::App* inner : command->get_subcommands(nullptr)) refuse_dashes(inner);
}

std::string explain(const CLI::App& app, const std::vector<std::string>& words,
                    const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "hummock";
  for (size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (word.size() > 1 && word[0] == '-') {
      const CLI::Option* option = option_of(*command, word);
      const bool letter = isalpha(static_cast<unsigned char>(word[1])) != 0;
      const std::string wrong = word.substr(0, word.find('='));
      if (option == nullptr && (letter || word[1] == '-'))
        return fmt::format("{}: there is no option {}{}", name, wrong,
                           nearest_text(wrong, options_of(*command)));
      if (option == nullptr) continue;
      for (int left = words_after(*option, word); left > 0; --left)
        if (++i >= words.size() || words[i] == "--")
          return fmt::format("{}: {} needs {}", name, word, value_of(*option));
      continue;
    }
    const std::vector<std::string> known = commands_of(*command);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      command = command->get_subcommand(word);
      name += " " + word;
    } else if (command == &app) {
      return fmt::format("{}: there is no command {}{}", name, word, nearest_text(word, known));
    } else if (command->get_positionals_at_end()) {
      break;  // a program, and its own arguments
    }
  }
  if (command == &app) return name + ": name a command; hummock --help lists them";
  return name + ": " + plain_words(error);
}

}  // namespace hummock::tool
