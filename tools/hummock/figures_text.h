// Figures of processes as tables, and as what Prometheus scrapes.
#pragma once

#include <string>
#include <vector>

#include "figures.h"
#include "observe/json.h"

namespace hummock::tool {

// What a process calls itself and its group may be any bytes: others than printable ASCII become question
// marks.
std::string ascii(std::string text);

// Of a size class: what its live blocks take, and what its slabs have in memory.
uint64_t used_bytes(const hummock_page_class_t& row);
uint64_t held_bytes(const hummock_page_class_t& row);

// Rows of a table as lines, or as whatever `make` makes of them.
template <class Row, class Make>
void for_rows(const Row* rows, uint32_t count, Make make) {
  for (const Row* row = rows; row != rows + count; ++row) {
    if (observe::is_used(*row)) make(*row);
  }
}

std::string json_of(const Snapshot& snapshot);
// For people: all that is known of one process.
std::string report(const Snapshot& snapshot);
// A line each of many processes, with a head.
std::string list(const std::vector<Snapshot>& snapshots);
// As Prometheus scrapes it: OpenMetrics, its end included, or the older text format.
enum class Format { open_metrics, text };
std::string metrics(const std::vector<Snapshot>& snapshots, Format format = Format::open_metrics);

}  // namespace hummock::tool
