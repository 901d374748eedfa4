// The reader of region logs, on any bytes: what it has read it can show, and the page it draws is well
// formed.
#include "region_log.h"

#include <cmath>
#include <sstream>

#include "fuzz.h"
#include "page.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fuzz::expect;
  namespace tool = hummock::tool;
  fuzz::Input input(data, size);
  const size_t rows = 1 + input.below(200);
  std::istringstream in(input.rest());
  const std::vector<tool::RegionLog> logs = tool::read_region_logs(in);
  for (const tool::RegionLog& log : logs) {
    double last = 0;
    for (const tool::RegionEvent& event : log.events) {
      expect(std::isfinite(event.at) && event.at >= last, "events in the order of time");
      expect(std::isfinite(event.took) && event.took >= 0, "durations are numbers");
      last = event.at;
    }
    expect(!tool::verdict(log).empty(), "a verdict");
    std::ostringstream out;
    tool::print_timeline(log, rows, out);
    expect(out.str().find("nan") == std::string::npos || in.str().find("nan") != std::string::npos,
           "figures in the timeline");
  }
  if (logs.empty()) return 0;
  std::ostringstream page;
  tool::write_page(logs, "fuzz<&\">.log", page);
  fuzz::check_page(page.str());
  return 0;
}
