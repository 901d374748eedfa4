#include "bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "near.h"

namespace hummock::tool {
namespace {

struct ModeFacts {
  double seconds;    // of one run
  double budget;     // of all of it, in seconds, the set-up left out
  unsigned planned;  // runs of each cell that the budget is made for, where all cells fit it
  unsigned least;    // and where they do not, before cells are left out
  unsigned most;     // when there is time left
};

ModeFacts facts_of(BenchMode mode) {
  switch (mode) {
    case BenchMode::kQuick:
      return {0.1, 105, 1, 1, 3};
    case BenchMode::kFull:
      return {1, 0, 5, 5, 5};
    default:
      return {0.5, 14 * 60, 3, 2, 5};
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

bool is_grid(const std::vector<Cell>& column) {
  return column.front().threads != column.back().threads && column.front().size != column.back().size;
}

// Every workload's first cell, then the largest grid, which draws little in parts, then every one's second …
// What does not fit the time is left out from the end. The quick set's grid is small and stands in its place.
std::vector<Cell> all_cells(const std::vector<const Workload*>& workloads, const BenchOptions& options) {
  std::vector<std::vector<Cell>> columns;
  std::size_t longest = 0, grid = ~std::size_t{0};
  for (const Workload* workload : workloads) {
    const CellSet* set = set_for(*workload, options.mode(), !options.workloads.empty());
    if (set == nullptr) continue;
    columns.push_back(cells_of(*workload, *set, options));
    longest = std::max(longest, columns.back().size());
    if (is_grid(columns.back()) && (grid > columns.size() || columns.back().size() > columns[grid].size()))
      grid = columns.size() - 1;
  }
  std::vector<Cell> all;
  const auto add_rest_of_grid = [&] {
    all.insert(all.end(), columns[grid].begin() + 1, columns[grid].end());
    columns[grid].resize(1);
  };
  const bool quick = options.mode() == BenchMode::kQuick;
  for (std::size_t i = 0; i < longest; ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      if (i < columns[j].size()) all.push_back(columns[j][i]);
      if (i == 0 && j == grid && quick) add_rest_of_grid();
    }
    if (i == 0 && grid < columns.size() && !quick) add_rest_of_grid();
  }
  return all;
}

// Seconds for so many runs of each cell on each allocator.
double time_for(const std::vector<Cell>& cells, unsigned runs, std::size_t allocators) {
  constexpr double kOverhead = 0.1;     // of a run: start, set-up and end
  constexpr double kUnknownSettle = 1;  // where the worker has its own
  double total = 0;
  for (const Cell& cell : cells)
    total += (cell.seconds + kOverhead) * runs + (cell.settle < 0 ? kUnknownSettle * runs : cell.settle);
  return total * static_cast<double>(allocators);
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
      throw std::runtime_error(fmt::format("no workload is called {}{}", name, nearest_text(name, known)));
  }
  return chosen;
}

Plan plan_bench(const std::vector<const Workload*>& workloads, const BenchOptions& options,
                std::size_t allocators) {
  const ModeFacts facts = facts_of(options.mode());
  const std::vector<Cell> all = all_cells(workloads, options);
  if (all.empty()) throw std::runtime_error("no workload has cells in this mode");
  Plan plan;
  plan.budget = options.budget > 0 ? options.budget * 60 : facts.budget;
  plan.repeat_fixed = options.repeat > 0;
  plan.repeat = plan.repeat_fixed ? options.repeat : facts.most;
  // Rather fewer runs than fewer cells.
  unsigned planned = plan.repeat_fixed ? options.repeat : facts.planned;
  const unsigned least = plan.repeat_fixed ? planned : facts.least;
  while (planned > least && plan.budget > 0 && time_for(all, planned, allocators) > plan.budget) --planned;
  for (const Cell& cell : all) {
    plan.cells.push_back(cell);
    if (plan.budget == 0 || plan.cells.size() == 1) continue;
    if (time_for(plan.cells, planned, allocators) <= plan.budget) continue;
    plan.cells.pop_back();
    plan.skipped.push_back(cell);
  }
  return plan;
}

}  // namespace hummock::tool
