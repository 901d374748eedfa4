#include "bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace hummock::tool {
namespace {

struct ModeFacts {
  double seconds;    // of one run
  double budget;     // of all of it, in seconds, the set-up left out
  unsigned planned;  // runs of each cell that the budget is made for
  unsigned most;     // when there is time left
};

ModeFacts facts_of(BenchMode mode) {
  switch (mode) {
    case BenchMode::kQuick:
      return {0.1, 105, 1, 3};
    case BenchMode::kFull:
      return {1, 0, 5, 5};
    default:
      return {0.5, 14 * 60, 3, 5};
  }
}

// The cell that says most about a workload: as many threads as run at once, a size in the middle.
template <typename T>
void middle_first(std::vector<T>& sizes) {
  std::rotate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
}

void cores_first(std::vector<unsigned>& threads) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::stable_partition(threads.begin(), threads.end(), [cores](unsigned count) { return count == cores; });
}

// What a mode measures of a workload; of one that was asked for by name always something.
const CellSet* set_for(const Workload& workload, BenchMode mode, bool named) {
  const CellSet& set = workload.sets[static_cast<int>(mode)];
  if (set.present) return &set;
  if (!named) return nullptr;
  const CellSet& usual = workload.sets[static_cast<int>(BenchMode::kDefault)];
  return usual.present ? &usual : &workload.whole;
}

std::vector<Cell> cells_of(const Workload& workload, const CellSet& set, const BenchOptions& options) {
  std::vector<unsigned> threads = options.threads.empty() ? set.threads : options.threads;
  std::vector<std::uint64_t> sizes =
      options.sizes.empty() || set.sizes.front() == 0 ? set.sizes : options.sizes;
  cores_first(threads);
  middle_first(sizes);
  Cell cell;
  cell.workload = &workload;
  cell.operations = set.operations;
  cell.seconds = set.seconds > 0 ? set.seconds : facts_of(options.mode()).seconds;
  if (options.seconds > 0 && set.operations == 0) cell.seconds = options.seconds;
  cell.settle = set.settle;
  std::vector<Cell> cells;
  for (const unsigned count : threads) {
    for (const std::uint64_t size : sizes) {
      cell.threads = count;
      cell.size = size;
      cells.push_back(cell);
    }
  }
  return cells;
}

// Every workload's first cell, then every one's second …: large grids lose their last cells first.
std::vector<Cell> all_cells(const std::vector<const Workload*>& workloads, const BenchOptions& options) {
  std::vector<std::vector<Cell>> columns;
  std::size_t longest = 0;
  for (const Workload* workload : workloads) {
    const CellSet* set = set_for(*workload, options.mode(), !options.workloads.empty());
    if (set == nullptr) continue;
    columns.push_back(cells_of(*workload, *set, options));
    longest = std::max(longest, columns.back().size());
  }
  std::vector<Cell> all;
  for (std::size_t i = 0; i < longest; ++i)
    for (const std::vector<Cell>& column : columns)
      if (i < column.size()) all.push_back(column[i]);
  return all;
}

}  // namespace

std::vector<const Workload*> choose_workloads(const std::vector<Workload>& all,
                                              const std::vector<std::string>& names) {
  std::vector<const Workload*> chosen;
  std::vector<std::string> known;
  for (const Workload& workload : all) {
    known.push_back(workload.name);
    known.push_back(workload.group);
    if (names.empty()) chosen.push_back(&workload);
  }
  for (const std::string& name : names) {
    bool found = false;
    for (const Workload& workload : all) {
      if (workload.name != name && workload.group != name) continue;
      found = true;
      if (std::find(chosen.begin(), chosen.end(), &workload) == chosen.end()) chosen.push_back(&workload);
    }
    if (!found)
      throw std::runtime_error(
          fmt::format("no workload is called {}; did you mean {}?", name, nearest(name, known)));
  }
  return chosen;
}

Plan plan_bench(const std::vector<const Workload*>& workloads, const BenchOptions& options,
                std::size_t allocators) {
  constexpr double kOverhead = 0.1;     // of a run: start, set-up and end
  constexpr double kUnknownSettle = 1;  // where the worker has its own
  const ModeFacts facts = facts_of(options.mode());
  Plan plan;
  plan.budget = options.budget > 0 ? options.budget * 60 : facts.budget;
  plan.repeat_fixed = options.repeat > 0;
  plan.repeat = plan.repeat_fixed ? options.repeat : facts.most;
  const unsigned planned = plan.repeat_fixed ? options.repeat : facts.planned;
  double total = 0;
  for (const Cell& cell : all_cells(workloads, options)) {
    const double length = cell.seconds + kOverhead;
    const double settle = cell.settle < 0 ? kUnknownSettle * planned : cell.settle;
    total += (length * planned + settle) * static_cast<double>(allocators);
    const bool fits = plan.budget == 0 || total <= plan.budget || plan.cells.empty();
    (fits ? plan.cells : plan.skipped).push_back(cell);
  }
  if (plan.cells.empty()) throw std::runtime_error("no workload has cells in this mode");
  return plan;
}

}  // namespace hummock::tool
