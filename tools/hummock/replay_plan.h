// The calls of one process of a trace, made ready for hummock-replay.
#pragma once

#include <string>

#include "../../bench/replay/plan.h"
#include "trace.h"

namespace hummock::tool {

// What a trace holds, read to its end.
struct TraceSummary {
  std::vector<TraceProcess> processes;
  bool cut = false;
};
// Throws what is wrong with the file.
TraceSummary read_trace(const std::string& path);

// A file that is removed with this.
class ReplayPlan {
 public:
  // Throws what is wrong, with the trace or with the room for the file.
  ReplayPlan(const std::string& trace, std::uint32_t process);
  ~ReplayPlan();
  ReplayPlan(const ReplayPlan&) = delete;
  ReplayPlan& operator=(const ReplayPlan&) = delete;

  const std::string& path() const { return path_; }
  const PlanHead& head() const { return head_; }

 private:
  std::string path_;
  PlanHead head_ = {};
};

}  // namespace hummock::tool
