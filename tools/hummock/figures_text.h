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
// As Prometheus scrapes it: OpenMetrics, its end included, or the older text format.
enum class Format { open_metrics, text };
std::string metrics(const std::vector<Snapshot>& snapshots, Format format = Format::open_metrics);

}  // namespace hummock::tool
