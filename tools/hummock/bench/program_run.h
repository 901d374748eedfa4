// One run of a program on an allocator.
#pragma once

#include <string>
#include <vector>

#include "bench/programs.h"

namespace hummock::tool {

// What its processes run with, as `execute` takes it; without an allocator, nothing is preloaded.
std::vector<std::string> program_environment(const JudgeProgram& program, const Allocator* allocator,
                                             const std::string& folder);

// Runs in `folder`, where the inputs are. Reports as run_once does.
Json run_program(const JudgeProgram& program, const Allocator& allocator, const std::string& folder,
                 const OneRun& options);

}  // namespace hummock::tool
