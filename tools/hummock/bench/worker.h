// hummock-bench-work, which runs one workload in a process of its own: what it offers, and one run of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/document.h"
#include "bench/peers.h"
#include "bench/process.h"

namespace hummock::tool {

// The cells of one mode, all threads × all sizes, and how each is run.
struct CellSet {
  bool present = false;
  std::vector<unsigned> threads;
  std::vector<std::uint64_t> sizes;  // {0}: the workload has none
  double seconds = 0;                // of one run, about; 0: what the mode says
  std::uint64_t operations = 0;      // fixed work, whatever time it takes; 0: as much as fits the seconds
  double settle = -1;                // seconds until settled memory is read; negative: the worker's own
};

struct Workload {
  std::string name, group, title, description, unit;
  CellSet whole;    // all that is useful
  CellSet sets[3];  // by BenchMode
};

// One point that is measured on every allocator.
struct Cell {
  const Workload* workload = nullptr;
  unsigned threads = 1;
  std::uint64_t size = 0;
  double seconds = 1;
  std::uint64_t operations = 0;
  double settle = -1;
};

struct OneRun {
  std::uint64_t seed = 1;
  double timeout = 60;
  double memory = 0;   // 0: most of what is available
  bool first = false;  // in a cell: with resident memory over time, and at the end
};

// The program of that name beside this one or in the build, or the one that was given; empty: it is not
// there.
std::string find_worker(const std::string& name, const std::string& given);
// What to do where that is so.
std::string why_no_worker(const std::string& name);
// The same, where there is nothing to be done without it: throws.
std::string demand_worker(const std::string& name, const std::string& given);
std::vector<Workload> list_workloads(const std::string& worker);
// Groups, names and titles of them, where there is no worker to ask.
std::vector<Workload> known_workloads();

// What the worker reports, with "disturbed" and what the run took in all; {"error": …} when it did not come
// to an end.
Json run_once(const std::string& worker, const Cell& cell, const Allocator& allocator, const OneRun& options);

// Why a run did not come to an end, or an empty text.
std::string what_failed(const Outcome& outcome, double timeout);
// What the run took in all, what of it is derived, and "disturbed".
void set_circumstances(Json& run, const Outcome& outcome);

}  // namespace hummock::tool
