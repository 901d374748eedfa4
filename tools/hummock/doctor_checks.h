// What the files of checks share.
#pragma once

#include "doctor.h"

namespace hummock::tool {

using Number = unsigned long long;
using Findings = std::vector<Finding>;

std::string size_text(Number bytes);  // "1.5 MiB"

void check_memory(const Facts& facts, Findings& out);
void check_overcommit(const Facts& facts, Findings& out);
void check_map_count(const Facts& facts, Findings& out);
void check_cgroup(const Facts& facts, Findings& out);
void check_pressure(const Facts& facts, Findings& out);
void check_numa(const Facts& facts, Findings& out);

}  // namespace hummock::tool
