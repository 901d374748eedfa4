#include "usage.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace hummock::tool {

const char kExamples[] =
    "Examples:\n"
    "  hummock run -- ./server --port 80        run a program on Hummock\n"
    "  hummock check ./server                   will it work, and if not, what to do\n"
    "  hummock check 1234                       does process 1234 run on Hummock?\n"
    "  hummock run --checked -- ./server        find overflows and uses after free\n"
    "  hummock run --stats -- ./server          print statistics at the end\n"
    "  hummock profile 1234                     which functions hold its memory\n"
    "  hummock record -- ./server               record its calls; hummock replay tells the best allocator "
    "for it\n"
    "  hummock leaks -- ./server                what nothing points to when it ends\n"
    "  hummock bench --quick                    compare with other allocators here\n"
    "  hummock doctor                           what this machine gives to an allocator\n"
    "\n"
    "hummock COMMAND --help says more; so does man hummock.";

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

// Letters to insert, remove or replace (Levenshtein).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t replaced = diagonal + (a[i] != b[k] ? 1 : 0);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, diagonal + 1, row[k] + 1});
    }
  }
  return row.back();
}

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

std::string with_nearest(const std::string& what, const std::string& word,
                         const std::vector<std::string>& names) {
  const std::string near = meant_by(word, names);
  return what + " " + word + (near.empty() ? "" : "; the nearest is " + near);
}

}  // namespace

std::string meant_by(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    // A beginning of the name is meant for it.
    const bool begins = word.size() > 3 && name.compare(0, word.size(), word) == 0;
    const size_t off = begins ? 1 : distance(word, name);
    if (off < least) {
      least = off;
      best = name;
    }
  }
  return best;
}

std::string explain(const CLI::App& app, int count, char** arguments, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "hummock";
  for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; ++i) {
    const std::string word = arguments[i];
    if (word.size() > 1 && word[0] == '-') {
      const std::string option = word.substr(0, word.find('='));
      if (option[1] != '-' || command->get_option_no_throw(option) != nullptr) continue;
      return with_nearest(name + ": there is no option", option, options_of(*command));
    }
    const std::vector<std::string> known = commands_of(*command);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      command = command->get_subcommand(word);
      name += " " + word;
    } else if (command == &app) {
      return with_nearest(name + ": there is no command", word, known);
    }
  }
  return name + ": " + error.what();
}

}  // namespace hummock::tool
