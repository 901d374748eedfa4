// The timeline of a region log for a terminal.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <ostream>

#include "region_log.h"

namespace hummock::tool {
namespace {

struct Row {
  uint64_t total = 0, most = 0;  // MiB mapped at its end and at most
  size_t allocations = 0, frees = 0, failures = 0;
  uint64_t purged_kib = 0;
  double slowest = 0;  // ms
};

Row sum(const std::vector<RegionEvent>& events, size_t from, size_t to, uint64_t before) {
  Row row;
  row.total = row.most = before;
  for (size_t i = from; i < to; ++i) {
    const RegionEvent& event = events[i];
    row.total = event.total_mib;
    row.most = std::max(row.most, event.total_mib);
    row.failures += event.failed();
    row.allocations += event.is("Alloc") && !event.failed();
    row.frees += event.is("Free");
    if (event.is("Purge")) row.purged_kib += event.kib;
    row.slowest = std::max(row.slowest, event.took);
  }
  return row;
}

std::string formatted(const char* format, auto... values) {
  char text[512];
  snprintf(text, sizeof text, format, values...);
  return text;
}

void print_rows(const RegionLog& log, size_t rows, std::ostream& out) {
  const double end = end_of(log);
  if (end < kMoment) rows = 1;
  const double step = end / static_cast<double>(rows);
  uint64_t most = 1;
  for (const RegionEvent& event : log.events) most = std::max(most, event.total_mib);
  out << "\nMapped, live and resident are those at the end of each row; of the bars # is what is mapped "
         "then, and . "
         "goes on to the most in that row.\n"
         "      until     mapped                            live   resident  allocs  frees  failed     "
         "purged    slowest\n";
  size_t at = 0;
  auto point = log.memory.begin();
  uint64_t total = 0;
  for (size_t i = 1; i <= rows; ++i) {
    const double until = i == rows ? end : step * static_cast<double>(i);
    size_t next = at;
    while (next < log.events.size() && (i == rows || log.events[next].at <= until)) ++next;
    const Row row = sum(log.events, at, next, total);
    while (point != log.memory.end() && (i == rows || point->at <= until)) ++point;
    std::string bar(static_cast<size_t>(20 * row.total / most), '#');
    bar.resize(static_cast<size_t>(20 * row.most / most), '.');
    std::string live = "-", resident = "-";
    if (point != log.memory.begin()) {
      live = formatted("%.0f MiB", std::prev(point)->live_mib);
      resident = formatted("%.0f MiB", std::prev(point)->resident_mib);
    }
    out << formatted("%10.3fs %6llu MiB %-20s %10s %10s %7zu %6zu %7zu %6llu MiB %8.2fms\n", until,
                     static_cast<unsigned long long>(row.total), bar.c_str(), live.c_str(), resident.c_str(),
                     row.allocations, row.frees, row.failures,
                     static_cast<unsigned long long>(row.purged_kib >> 10), row.slowest);
    at = next;
    total = row.total;
  }
}

void print_event(const RegionEvent& event, std::ostream& out) {
  out << formatted("  %9.3fs %9.2fms %9lluk  ", event.at, event.took,
                   static_cast<unsigned long long>(event.kib))
      << event.what << (event.reason.empty() ? "" : ": ") << event.reason << "\n";
}

}  // namespace

void print_timeline(const RegionLog& log, size_t rows, std::ostream& out) {
  out << "Hummock " << log.version << "\n";
  for (const auto& [name, value] : log.facts) out << "  " << name << ": " << value << "\n";
  out << "  options:";
  bool any = false;
  for (const std::string& option : log.options) {
    if (option.find("(default)") != std::string::npos) continue;
    out << " " << option;
    any = true;
  }
  out << (any ? "\n" : " all as they are by default\n") << verdict(log) << "\n";
  if (log.events.empty()) {
    out << "No events.\n";
  } else {
    print_rows(log, rows, out);
    std::vector<RegionEvent> slow = log.events;
    std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.took > b.took; });
    out << "\nSlowest:\n";
    for (size_t i = 0; i < std::min<size_t>(5, slow.size()); ++i) print_event(slow[i], out);
    bool head = false;
    for (const RegionEvent& event : log.events) {
      if (!event.failed()) continue;
      if (!head) out << "\nRefused by the system:\n";
      head = true;
      print_event(event, out);
    }
  }
  out << "\n"
      << (log.ended
              ? "Summary:\n"
              : "No summary: the program still runs, made way for another (exec), crashed, or was killed.\n");
  for (const auto& [name, value] : log.summary) out << "  " << name << ": " << value << "\n";
  if (log.not_understood != 0) out << log.not_understood << " lines were not understood.\n";
}

}  // namespace hummock::tool
