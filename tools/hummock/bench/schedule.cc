#include "bench/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/process.h"
#include "bench/progress.h"
#include "bench/stats.h"

namespace hummock::tool {
namespace {

using Clock = std::chrono::steady_clock;

class Schedule {
 public:
  Schedule(Plan& plan, const std::vector<Allocator>& allocators, const ScheduleOptions& options)
      : plan_(plan),
        allocators_(allocators),
        options_(options),
        random_(options.seed),
        runs_(plan.cells.size(), std::vector<Json>(allocators.size(), Json::array())),
        errors_(plan.cells.size(), std::vector<std::string>(allocators.size())) {}

  Json run();

 private:
  bool round(unsigned number);
  void run_cell(std::size_t cell, unsigned round);
  void run_one(std::size_t cell, std::size_t allocator, unsigned round);
  bool has_time_for(std::size_t cell) const;
  void show(std::size_t cell, std::size_t allocator);
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  OneRun one_run(const Cell& cell, unsigned round) const;
  Json results();
  void drop_unmeasured();

  Plan& plan_;
  const std::vector<Allocator>& allocators_;
  const ScheduleOptions& options_;
  std::mt19937_64 random_;
  std::vector<std::vector<Json>> runs_;
  std::vector<std::vector<std::string>> errors_;
  std::size_t done_ = 0;
  std::size_t again_ = 0;  // runs that were repeated because they were disturbed
  Clock::time_point start_ = Clock::now();
  Progress progress_;
};

// What one more pass over a cell will take: what it took so far, else what runs took on average.
bool Schedule::has_time_for(std::size_t cell) const {
  if (plan_.budget == 0) return true;
  double took = 0;
  for (const Json& runs : runs_[cell])
    if (!runs.empty()) took += runs.back().value("took_seconds", 0.0);
  if (took == 0 && done_ > 0)
    took = elapsed() / static_cast<double>(done_) * static_cast<double>(allocators_.size());
  return elapsed() + took <= plan_.budget;
}

void Schedule::show(std::size_t cell, std::size_t allocator) {
  const double planned = static_cast<double>(plan_.cells.size() * allocators_.size() * plan_.repeat);
  const double runs = static_cast<double>(std::max<std::size_t>(done_, 1));
  double left =
      done_ == 0 ? planned * (plan_.cells[cell].seconds + 0.2) : elapsed() / runs * (planned - runs);
  if (plan_.budget > 0) left = std::min(left, plan_.budget - elapsed());
  const Cell& point = plan_.cells[cell];
  const Json named = {{"workload", point.workload->name}, {"threads", point.threads}, {"size", point.size}};
  const double past = elapsed();
  progress_.show(past / std::max(1e-9, past + left), left,
                 cell_name(named) + ": " + allocators_[allocator].name);
}

OneRun Schedule::one_run(const Cell& cell, unsigned round) const {
  const double least = options_.mode == BenchMode::kQuick ? 10 : 60;
  OneRun one;
  one.seed = options_.seed + round;  // the same for all allocators
  one.timeout = options_.timeout > 0 ? options_.timeout : least + 20 * cell.seconds;
  one.memory = options_.memory;
  one.first = round == 0;
  return one;
}

void Schedule::run_one(std::size_t cell, std::size_t allocator, unsigned round) {
  if (interrupted() || !errors_[cell][allocator].empty()) return;
  show(cell, allocator);
  const Cell& point = plan_.cells[cell];
  const Json run = options_.run(point, allocators_[allocator], one_run(point, round));
  ++done_;
  if (interrupted()) return;
  if (run.contains("error")) {
    errors_[cell][allocator] = run["error"];
    progress_.say(fmt::format("{} on {}: {}", point.workload->name, allocators_[allocator].name,
                              run["error"].get<std::string>()));
    return;
  }
  runs_[cell][allocator].push_back(run);
}

void Schedule::run_cell(std::size_t cell, unsigned round) {
  std::vector<std::size_t> order(allocators_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  for (const std::size_t allocator : order) run_one(cell, allocator, round);
  // Disturbed ones once more, as long as these are not the most of all runs.
  for (const std::size_t allocator : order) {
    const Json& runs = runs_[cell][allocator];
    if (runs.empty() || !runs.back().value("disturbed", false)) continue;
    if (again_ * 4 > done_ || !has_time_for(cell)) continue;
    ++again_;
    run_one(cell, allocator, round);
  }
}

// False when there was time for no cell.
bool Schedule::round(unsigned number) {
  bool any = false;
  for (std::size_t cell = 0; cell < plan_.cells.size() && !interrupted(); ++cell) {
    const bool must = number == 0 ? cell == 0 : plan_.repeat_fixed;
    const bool begun = number == 0 || !runs_[cell].front().empty() || !errors_[cell].front().empty();
    if (!begun || (!must && !has_time_for(cell))) continue;
    run_cell(cell, number);
    any = true;
  }
  return any;
}

void Schedule::drop_unmeasured() {
  const auto measured = [this](std::size_t cell) {
    for (std::size_t i = 0; i < allocators_.size(); ++i)
      if (!runs_[cell][i].empty() || !errors_[cell][i].empty()) return true;
    return false;
  };
  std::size_t kept = 0;
  for (std::size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    if (!measured(cell)) {
      plan_.skipped.push_back(plan_.cells[cell]);
      continue;
    }
    plan_.cells[kept] = plan_.cells[cell];
    std::swap(runs_[kept], runs_[cell]);
    std::swap(errors_[kept], errors_[cell]);
    ++kept;
  }
  plan_.cells.resize(kept);
}

Json Schedule::results() {
  Json results = Json::array();
  for (std::size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    const Cell& point = plan_.cells[cell];
    for (std::size_t i = 0; i < allocators_.size(); ++i) {
      Json result = {{"workload", point.workload->name}, {"group", point.workload->group},
                     {"title", point.workload->title},   {"unit", point.workload->unit},
                     {"threads", point.threads},         {"size", point.size},
                     {"allocator", allocators_[i].name}, {"runs", std::move(runs_[cell][i])}};
      sum_up_runs(result);
      const std::string& error = errors_[cell][i];
      result["error"] = error.empty() ? Json() : Json(error);
      if (error.empty() && result["runs"].empty()) result["error"] = "interrupted";
      results.push_back(std::move(result));
    }
  }
  return results;
}

Json Schedule::run() {
  for (unsigned number = 0; number < plan_.repeat && !interrupted(); ++number)
    if (!round(number)) break;
  drop_unmeasured();
  return results();
}

}  // namespace

Json measure(Plan& plan, const std::vector<Allocator>& allocators, const ScheduleOptions& options) {
  return Schedule(plan, allocators, options).run();
}

}  // namespace hummock::tool
