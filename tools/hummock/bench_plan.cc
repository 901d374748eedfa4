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
      return {0.2, 105, 1, 3};
    case BenchMode::kFull:
      return {1, 0, 5, 5};
    default:
      return {0.5, 14 * 60, 3, 5};
  }
}

// The one cell that says most about a workload: as many threads as run at once, a size in the middle.
unsigned typical_threads(const std::vector<unsigned>& threads) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  unsigned best = threads.front();
  for (const unsigned count : threads)
    if (count <= cores && (count > best || best > cores)) best = count;
  return best;
}

// The cells of one workload, those of the quick mode first; the second number is how many these are.
std::pair<std::vector<Cell>, std::size_t> cells_of(const Workload& workload, const BenchOptions& options,
                                                   double seconds) {
  const std::vector<unsigned>& threads = options.threads.empty() ? workload.threads : options.threads;
  const bool sized = workload.sizes.front() != 0;
  const std::vector<std::uint64_t>& sizes = options.sizes.empty() || !sized ? workload.sizes : options.sizes;
  std::vector<unsigned> quick_threads = options.threads;
  if (quick_threads.empty()) quick_threads = workload.quick_threads;
  if (quick_threads.empty()) quick_threads = {typical_threads(threads)};
  std::vector<std::uint64_t> quick_sizes = sized ? options.sizes : workload.sizes;
  if (quick_sizes.empty()) quick_sizes = workload.quick_sizes;
  if (quick_sizes.empty()) quick_sizes = {sizes[sizes.size() / 2]};

  std::vector<Cell> cells;
  const auto add = [&](unsigned count, std::uint64_t size) {
    const bool known = std::any_of(cells.begin(), cells.end(), [&](const Cell& cell) {
      return cell.threads == count && cell.size == size;
    });
    if (!known) cells.push_back({&workload, count, size, seconds, 0});
  };
  for (const unsigned count : quick_threads)
    for (const std::uint64_t size : quick_sizes) add(count, size);
  const std::size_t quick = cells.size();
  for (const unsigned count : threads)
    for (const std::uint64_t size : sizes) add(count, size);
  return {cells, quick};
}

std::vector<Cell> all_cells(const std::vector<const Workload*>& workloads, const BenchOptions& options,
                            double seconds) {
  const bool named = !options.workloads.empty();
  const bool any_quick =
      std::any_of(workloads.begin(), workloads.end(), [](const Workload* one) { return one->quick; });
  std::vector<Cell> all;
  for (const Workload* workload : workloads) {
    const bool in_quick = named || !any_quick || workload->quick;
    if (options.mode() == BenchMode::kQuick && !in_quick) continue;
    auto [cells, quick] = cells_of(*workload, options, seconds);
    if (options.mode() == BenchMode::kQuick) cells.resize(quick);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      // Every workload's first cell, then the other quick ones, then the rest of each in turn.
      cells[i].importance = static_cast<int>(i == 0 ? (in_quick ? 0 : 1) : i < quick && in_quick ? 2 : 3 + i);
      all.push_back(cells[i]);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Cell& a, const Cell& b) { return a.importance < b.importance; });
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
                std::size_t allocators, double overhead) {
  const ModeFacts facts = facts_of(options.mode());
  Plan plan;
  plan.budget = options.budget > 0 ? options.budget * 60 : facts.budget;
  plan.repeat_fixed = options.repeat > 0;
  plan.repeat = plan.repeat_fixed ? options.repeat : facts.most;
  const unsigned planned = plan.repeat_fixed ? options.repeat : facts.planned;
  double total = 0;
  for (Cell cell : all_cells(workloads, options, facts.seconds)) {
    if (cell.workload->seconds > 0 && options.mode() == BenchMode::kQuick)
      cell.seconds = cell.workload->seconds;
    if (options.seconds > 0) cell.seconds = options.seconds;
    total += (cell.seconds + overhead) * static_cast<double>(allocators * planned);
    const bool fits = plan.budget == 0 || total <= plan.budget || plan.cells.empty();
    (fits ? plan.cells : plan.skipped).push_back(cell);
  }
  return plan;
}

}  // namespace hummock::tool
