#include "completion.h"

#include <algorithm>
#include <iostream>

namespace hummock::tool {
namespace {

struct Word {
  std::string name;
  std::string text;
};

// Of a description the first clause, with nothing in it that a shell would take for its own.
std::string plain(const std::string& text) {
  std::string safe;
  for (const char c : text.substr(0, text.find_first_of(";\n"))) {
    if (std::string("'\"\\`$[]:").find(c) == std::string::npos) safe += c;
  }
  return safe;
}

std::vector<Word> words_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      words.push_back({"--" + name, plain(option->get_description())});
  return words;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::erase_if(commands, [](const CLI::App* each) { return each->get_group().empty(); });
  return commands;
}

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* each : shown_commands(app)) names += each->get_name() + " ";
  for (const Word& word : words_of(app)) names += word.name + " ";
  if (!names.empty()) names.pop_back();
  return names;
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
               "  if ((COMP_CWORD == 1)); then command=; fi\n"
               "  case $command in\n"
               "  '') words='"
            << names_of(app) << "' ;;\n";
  for (const CLI::App* each : shown_commands(app))
    std::cout << "  " << each->get_name() << ") words='" << names_of(*each) << "' ;;\n";
  std::cout << "  esac\n"
               "  if [[ $command != '' && $word != -* ]]; then\n"
               "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
               "    if [[ $command = check ]]; then COMPREPLY+=($(compgen -c -- \"$word\")); fi\n"
               "  fi\n"
               "  COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n"
               "}\n"
               "complete -o filenames -o bashdefault -F _hummock hummock\n";
}

void print_zsh(const CLI::App& app) {
  std::cout << "#compdef hummock\n# zsh completion of hummock; made by: hummock completion zsh\n"
               "local -a commands\ncommands=(\n";
  for (const CLI::App* each : shown_commands(app))
    std::cout << "  '" << each->get_name() << ":" << plain(each->get_description()) << "'\n";
  std::cout
      << ")\nif ((CURRENT == 2)); then\n  _describe command commands\n  return\nfi\ncase $words[2] in\n";
  for (const CLI::App* each : shown_commands(app)) {
    std::cout << "  " << each->get_name() << ") _arguments";
    for (const Word& word : words_of(*each)) std::cout << " '" << word.name << "[" << word.text << "]'";
    const std::string name = each->get_name();
    if (name == "run")
      std::cout << " '*::program:_normal'";
    else if (name == "check")
      std::cout << " '*:program:_command_names -e'";
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
  for (const CLI::App* each : shown_commands(app))
    for (const Word& word : words_of(*each))
      std::cout << "complete -c hummock -n '__fish_seen_subcommand_from " << each->get_name() << "' -l "
                << word.name.substr(2) << " -d '" << word.text << "'\n";
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
