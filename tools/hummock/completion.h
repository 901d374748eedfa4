// Completion for shells, made of the options as they are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hummock::tool {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

void print_completion(const CLI::App& app, const std::string& shell);

}  // namespace hummock::tool
