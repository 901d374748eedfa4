// The allocators that are compared, and where they come from.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

namespace hummock::tool {

struct Allocator {
  std::string name, version;
  std::string library;  // empty: what libc has
  std::string origin;   // build, system, apt, crates.io or given
  std::string compiler, flags;
  std::string setting;  // NAME=VALUE, without which it is not at its best; mostly empty
};

// What makes a program run on it, as `execute` takes it.
std::vector<std::string> environment_of(const Allocator& allocator);

struct Peers {
  std::vector<Allocator> allocators;  // Hummock first, then the baseline's and the others' usual order
  std::vector<std::string> missing;   // what was not found, and what to do about it
};

// Throws when something that was asked for by name is unknown or not there.
Peers find_allocators(const BenchOptions& options);

// Runs the worker with the allocator preloaded and asks the loader where malloc and free lead. Why the
// allocator is not what the worker would run on, or an empty text.
std::string why_not_active(const Allocator& allocator, const std::string& worker);

}  // namespace hummock::tool
