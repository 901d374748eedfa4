// The options of hummock record and hummock replay.
#pragma once

#include "record.h"
#include "replay.h"

namespace CLI {
class App;
}

namespace hummock::tool {

class TraceCommands {
 public:
  explicit TraceCommands(CLI::App& app);
  bool chosen() const;
  int run(int count, char** arguments);

 private:
  CLI::App* record_;
  CLI::App* replay_;
  RecordOptions record_options_;
  ReplayOptions replay_options_;
};

}  // namespace hummock::tool
