// A region log, as the library writes it, read back.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hummock::tool {

struct RegionEvent {
  double at = 0;    // seconds since the start
  double took = 0;  // milliseconds
  uint64_t kib = 0;
  uint64_t address = 0;
  std::string what;        // "Alloc SP", "Purge"
  uint64_t total_mib = 0;  // mapped, after it
  std::string reason;

  bool is(const char* prefix) const { return what.rfind(prefix, 0) == 0; }
  bool failed() const { return what.find("failed") != std::string::npos; }
};

// What the program has in live blocks, and what the system counts as resident, at one moment.
struct MemoryPoint {
  double at = 0;  // seconds since the start
  double live_mib = 0, resident_mib = 0;
};

// What one program wrote. A file has several when a program executed another one.
struct RegionLog {
  std::string version;
  std::vector<std::pair<std::string, std::string>> facts;  // the head, in its order, options apart
  std::vector<std::string> options;
  std::vector<std::pair<std::string, std::string>> summary;
  std::vector<RegionEvent> events;
  std::vector<MemoryPoint> memory;  // logs of earlier versions have none
  size_t not_understood = 0;        // lines
  bool ended = false;               // it has a summary: the program ended by itself

  std::string fact(const std::string& name) const;
};

// Seconds at which the last thing was written. Before a moment has passed there is nothing to draw: such a
// program mostly executed another one, whose log follows.
double end_of(const RegionLog& log);
inline constexpr double kMoment = 0.005;

// One entry for each program; empty when the text is not a region log.
std::vector<RegionLog> read_region_logs(std::istream& in);

// Are large pages on? One sentence, from what happened rather than from what was asked for.
std::string verdict(const RegionLog& log);

// For people: facts, a timeline of at most `rows` rows, what took longest, what fell back.
void print_timeline(const RegionLog& log, size_t rows, std::ostream& out);

// One page with pictures, which needs nothing beside itself.
void write_page(const std::vector<RegionLog>& logs, const std::string& name, std::ostream& out);

}  // namespace hummock::tool
