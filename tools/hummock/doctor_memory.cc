// Checks of memory: what there is, what is promised, what a group or a node may have.
#include <cstdio>
#include <sstream>

#include "doctor_checks.h"

namespace hummock::tool {

std::string size_text(Number bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  char text[32];
  snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

void check_overcommit(const Facts& facts, Findings& out) {
  const std::optional<Number> mode = facts.number("/proc/sys/vm/overcommit_memory");
  if (!mode) return;
  Finding finding{"overcommit", Level::fine, "vm.overcommit_memory = " + std::to_string(*mode), "", "", ""};
  if (*mode == 2) {
    const Number limit = facts.number_field("/proc/meminfo", "CommitLimit").value_or(0) << 10;
    const Number now = facts.number_field("/proc/meminfo", "Committed_AS").value_or(0) << 10;
    finding.level = Level::finding;
    finding.state += ", " + size_text(now) + " of " + size_text(limit) + " promised";
    finding.consequence =
        "each region counts as a whole against the limit, touched or not: malloc may return null while "
        "memory "
        "is free";
    finding.fix = "sysctl -w vm.overcommit_memory=0";
  }
  out.push_back(finding);
}

void check_map_count(const Facts& facts, Findings& out) {
  const std::optional<Number> most = facts.number("/proc/sys/vm/max_map_count");
  if (!most) return;
  Finding finding{"mappings of a process", Level::fine, "at most " + std::to_string(*most), "", "", ""};
  if (*most < 65530) {
    finding.level = Level::finding;
    finding.consequence =
        "below the usual 65,530: with many blocks above 16 MiB, or many huge pages returned one by one, "
        "the system refuses to map and unmap";
    finding.fix = "sysctl -w vm.max_map_count=262144";
  }
  out.push_back(finding);
}

// The tightest limit of the process's group and the groups around it: version 2, else version 1.
void check_cgroup(const Facts& facts, Findings& out) {
  std::istringstream groups(facts.text("/proc/self/cgroup").value_or(""));
  std::optional<Number> least, used;
  std::string where;
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.compare(0, 3, "0::") == 0;
    const size_t first = line.find(":memory:");
    if (!second && first == std::string::npos) continue;
    const std::string base = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string group = second ? line.substr(3) : line.substr(first + 8);
    for (;; group.erase(group.find_last_of('/'))) {
      const std::string folder = base + (group == "/" ? "" : group) + "/";
      const auto limit = facts.number(folder + (second ? "memory.max" : "memory.limit_in_bytes"));
      if (limit && *limit < Number{1} << 60 && (!least || *limit < *least)) {
        least = limit;
        used = facts.number(folder + (second ? "memory.current" : "memory.usage_in_bytes"));
        where = folder + (second ? "memory.max" : "memory.limit_in_bytes");
      }
      if (group.empty() || group.find_last_of('/') == std::string::npos) break;
    }
  }
  Finding finding{"memory limit of the group", Level::fine, "none", "", "", ""};
  if (least) {
    finding.level = Level::note;
    finding.state = size_text(*least) + (used ? ", " + size_text(*used) + " used" : "");
    finding.consequence =
        "at this limit the kernel kills a process of the group; huge_reserve takes at most three quarters of "
        "what is left";
    if (used && *used >= *least / 10 * 9) {
      finding.level = Level::finding;
      finding.fix = "echo " + std::to_string(*least * 2) + " > " + where;
    }
  }
  out.push_back(finding);
}

void check_pressure(const Facts& facts, Findings& out) {
  if (facts.text("/proc/pressure/memory")) {
    out.push_back({"memory pressure", Level::fine, "the kernel reports it", "", ""});
  } else {
    out.push_back({"memory pressure", Level::note, "the kernel does not report it (PSI)",
                   "background:on returns memory only after a time, not when others are short of it", "",
                   "psi=1 on the kernel's command line"});
  }
}

void check_numa(const Facts& facts, Findings& out) {
  const std::string nodes = facts.text("/sys/devices/system/node/online").value_or("0");
  const bool several = nodes.find_first_of("-,") != std::string::npos;
  Finding finding{"memory nodes", Level::fine, several ? nodes : "one", "", "", ""};
  if (several) {
    finding.level = Level::note;
    finding.consequence =
        "memory is on the node of the thread that touches it first; reserved huge pages are spread "
        "over the nodes";
    finding.fix = "numactl --interleave=all program";
    finding.hint = "or --cpunodebind=0 --membind=0 for a program that fits into one node";
  }
  out.push_back(finding);
  if (facts.number("/proc/sys/vm/zone_reclaim_mode").value_or(0) != 0) {
    out.push_back({"zone reclaim", Level::finding, "on",
                   "memory of other nodes is free while this one is searched for more",
                   "sysctl -w vm.zone_reclaim_mode=0"});
  }
}

void check_memory(const Facts& facts, Findings& out) {
  const Number total = facts.number_field("/proc/meminfo", "MemTotal").value_or(0) << 10;
  const Number available = facts.number_field("/proc/meminfo", "MemAvailable").value_or(0) << 10;
  Finding finding{"memory", Level::fine, size_text(total) + ", " + size_text(available) + " available", "",
                  ""};
  if (total != 0 && available < total / 20) {
    finding.level = Level::finding;
    finding.consequence =
        "less than a twentieth is available: there are no huge pages, and the kernel may soon kill a process";
    finding.hint = "ps aux --sort=-rss | head shows who has it";
  }
  out.push_back(finding);
}

}  // namespace hummock::tool
