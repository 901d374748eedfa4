#include "completion.h"

#include <algorithm>
#include <iostream>

namespace hummock::tool {
namespace {

struct Word {
  std::string name;
  std::string text;
  bool has_value;
  std::string choices;  // the values that there are, with blanks between; empty: any
};

// Of a description the first clause, with nothing in it that a shell would take for its own.
std::string plain(const std::string& text) {
  std::string safe;
  for (const char c : text.substr(0, text.find_first_of(";\n"))) {
    if (std::string("'\"\\`$[]:").find(c) == std::string::npos) safe += c;
  }
  return safe;
}

// Of the type "none|first|all".
std::string choices_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return "";
  std::replace(type.begin(), type.end(), '|', ' ');
  return type;
}

std::vector<Word> words_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      words.push_back({"--" + name, plain(option->get_description()), option->get_items_expected_min() > 0,
                       choices_of(*option)});
  return words;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::erase_if(commands, [](const CLI::App* each) { return each->get_group().empty(); });
  return commands;
}

// What stands behind the command itself, if that is one of a few words.
std::string operands_of(const CLI::App& command) {
  std::string operands;
  if (command.get_name() == "help")
    for (const CLI::App* each : shown_commands(*command.get_parent())) operands += each->get_name() + " ";
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) operands += choices_of(*option);
  return operands;
}

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* each : shown_commands(app)) names += each->get_name() + " ";
  for (const Word& word : words_of(app)) names += word.name + " ";
  return names + operands_of(app);
}

// Where an option with a few values stands before the word, one of those is all that fits.
void print_bash_values(const CLI::App& app) {
  std::cout << "  local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
               "  if [[ $word = = ]]; then word=; elif [[ $before = = ]]; then "
               "before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
               "  local values=\n"
               "  case $command/$before in\n";
  for (const CLI::App* each : shown_commands(app))
    for (const Word& word : words_of(*each))
      if (!word.choices.empty())
        std::cout << "  " << each->get_name() << "/" << word.name << ") values='" << word.choices << "' ;;\n";
  std::cout
      << "  esac\n"
         "  if [[ $values != '' ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); return; fi\n";
}

void print_bash(const CLI::App& app) {
  std::cout << "# bash completion of hummock; made by: hummock completion bash\n"
               "_hummock() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words i\n"
               "  COMPREPLY=()\n"
               "  for ((i = 2; i < COMP_CWORD; ++i)); do\n"
               "    if [[ $command = run && ${COMP_WORDS[i]} = -- ]]; then\n"
               "      if ((COMP_CWORD == i + 1)); then COMPREPLY=($(compgen -c -- \"$word\")); fi\n"
               "      COMPREPLY+=($(compgen -f -- \"$word\"))\n"
               "      return\n"
               "    fi\n"
               "  done\n"
               "  if ((COMP_CWORD == 1)); then command=; fi\n";
  print_bash_values(app);
  std::cout << "  local files=$command\n"
               "  case $command in\n"
               "  '') words='"
            << names_of(app) << "' ;;\n";
  for (const CLI::App* each : shown_commands(app))
    std::cout << "  " << each->get_name() << ") words='" << names_of(*each) << "'"
              << (operands_of(*each).empty() ? "" : " files=") << " ;;\n";
  std::cout << "  esac\n"
               "  if [[ $files != '' && $word != -* ]]; then\n"
               "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
               "    if [[ $command = check ]]; then COMPREPLY+=($(compgen -c -- \"$word\")); fi\n"
               "  fi\n"
               "  COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n"
               "}\n"
               "complete -o filenames -o bashdefault -F _hummock hummock\n";
}

void print_zsh(const CLI::App& app) {
  std::cout << "#compdef hummock\n# zsh completion of hummock; made by: hummock completion zsh\n"
               "local -a names  # commands is zsh's own\nnames=(\n";
  for (const CLI::App* each : shown_commands(app))
    std::cout << "  '" << each->get_name() << ":" << plain(each->get_description()) << "'\n";
  // _arguments counts the operands of the command, the first word; behind -- stands another one.
  std::cout << ")\nif ((CURRENT == 2)); then\n  _describe command names\n  return\nfi\n"
               "shift words\n((CURRENT--))\nlocal dashes=${words[(i)--]}\n"
               "if [[ $words[1] = run ]] && ((dashes < CURRENT)); then\n"
               "  shift $dashes words\n  ((CURRENT -= dashes))\n  _normal\n  return\nfi\n"
               "case $words[1] in\n";
  for (const CLI::App* each : shown_commands(app)) {
    std::cout << "  " << each->get_name() << ") _arguments -S";
    for (const Word& word : words_of(*each)) {
      std::cout << " '" << word.name << "[" << word.text << "]";
      if (word.has_value)
        std::cout << ":value:" << (word.choices.empty() ? "_files" : "(" + word.choices + ")");
      std::cout << "'";
    }
    const std::string name = each->get_name(), operands = operands_of(*each);
    if (name == "run")
      std::cout << " '(-)1:program: _command_names -e' '*::arguments: _normal'";
    else if (name == "check")
      std::cout << " '*:program: _command_names -e'";
    else if (!operands.empty())
      std::cout << " ':word:(" << operands << ")'";
    else
      std::cout << " '*:file:_files'";
    std::cout << " ;;\n";
  }
  std::cout << "esac\n";
}

void print_fish(const CLI::App& app) {
  std::cout << "# fish completion of hummock; made by: hummock completion fish\n";
  for (const CLI::App* each : shown_commands(app))
    std::cout << "complete -c hummock -n __fish_use_subcommand -f -a " << each->get_name() << " -d '"
              << plain(each->get_description()) << "'\n";
  for (const CLI::App* each : shown_commands(app)) {
    const std::string after = "complete -c hummock -n '__fish_seen_subcommand_from " + each->get_name() + "'";
    for (const Word& word : words_of(*each)) {
      std::cout << after << " -l " << word.name.substr(2) << " -d '" << word.text << "'";
      if (word.has_value) std::cout << (word.choices.empty() ? " -r" : " -x -a '" + word.choices + "'");
      std::cout << "\n";
    }
    if (const std::string operands = operands_of(*each); !operands.empty())
      std::cout << after << " -f -a '" << operands << "'\n";
  }
  std::cout
      << "complete -c hummock -n '__fish_seen_subcommand_from run check' -a '(__fish_complete_command)'\n";
}

}  // namespace

void print_completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") print_bash(app);
  if (shell == "zsh") print_zsh(app);
  if (shell == "fish") print_fish(app);
}

}  // namespace hummock::tool
