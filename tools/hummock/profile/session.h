// Where profiles come from: a running process, or a program that is started here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profile_options.h"
#include "report.h"

namespace hummock::tool {

// Samples the processes that are meant for a while, or until a signal comes. Lines on standard error say what
// went wrong; nothing: no process has a profile.
std::optional<Report> watch_processes(const ProfileOptions& options);

// Runs the program, with memory for its profile and those of all processes that it starts. *status is how it
// ended, as an exit status.
std::optional<Report> run_program(const ProfileOptions& options, int* status);

}  // namespace hummock::tool
