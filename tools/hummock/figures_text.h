// Figures of processes as tables, and as what Prometheus scrapes.
#pragma once

#include <string>
#include <vector>

#include "figures.h"

namespace hummock::tool {

std::string bytes_text(uint64_t bytes);  // "1.5M"

std::string json_of(const Snapshot& snapshot);
// For people: all that is known of one process.
std::string report(const Snapshot& snapshot);
// A line each of many processes, with a head.
std::string list(const std::vector<Snapshot>& snapshots);
// The text format of OpenMetrics, its end included.
std::string metrics(const std::vector<Snapshot>& snapshots);

}  // namespace hummock::tool
