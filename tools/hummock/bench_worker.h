// hummock-bench-work, which runs one workload in a process of its own: what it offers, and one run of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench.h"
#include "bench_document.h"
#include "bench_peers.h"

namespace hummock::tool {

struct Workload {
  std::string name, group, title, description, unit;
  std::vector<unsigned> threads;
  std::vector<std::uint64_t> sizes;  // {0}: it has none
  bool quick = false;
  std::vector<unsigned> quick_threads;
  std::vector<std::uint64_t> quick_sizes;
  double seconds = 0;  // of one run, where it wants to say so itself
};

// One point that is measured on every allocator.
struct Cell {
  const Workload* workload = nullptr;
  unsigned threads = 1;
  std::uint64_t size = 0;
  double seconds = 1;
  int importance = 0;  // the lower, the sooner
};

struct OneRun {
  std::uint64_t seed = 1;
  double timeout = 60;
  bool series = false;
  double settle = -1;  // seconds to wait before resident memory is read at the end; negative: as usual
};

std::string find_worker(const BenchOptions& options);
std::vector<Workload> list_workloads(const std::string& worker);

// What the worker reports, with "disturbed" and what the run took in all; {"error": …} when it did not come
// to an end.
Json run_once(const std::string& worker, const Cell& cell, const Allocator& allocator, const OneRun& options);

}  // namespace hummock::tool
