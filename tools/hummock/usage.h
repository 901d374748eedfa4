// What is said of a command line that is not understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hummock::tool {

inline constexpr int kUsage = 2;  // the exit status of it; `hummock run` has its own

// One line that names the argument at fault of the words (the first is the program) and, if there is one,
// what was probably meant.
std::string explain(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);

// No option of the command takes "--", which ends the options, for its value.
void refuse_dashes(CLI::App* command);

// What follows the list of commands in `hummock --help`, and the options in that of `run` and `check`.
extern const char kExamples[];
// What the help of a command ends with that says no more than this; empty: nothing.
const char* examples_of(const std::string& command);
extern const char kRunNotes[];
extern const char kCheckNotes[];

}  // namespace hummock::tool
