// What is looked at. Each check adds one finding, or none where there is nothing to say.
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <utility>

#include "doctor_checks.h"
#include "preload.h"
#include "run.h"

namespace hummock::tool {
namespace {

constexpr const char* kThp = "/sys/kernel/mm/transparent_hugepage/";
constexpr const char* kPools = "/sys/kernel/mm/hugepages/";
constexpr Number kGiB = Number{1} << 30;
constexpr Number kPagesOfRegion = 16;

// ---- The library --------------------------------------------------------------------------------

// The tool starts itself with it, so that what can be wrong with a preload shows here.
void check_library(const Facts& facts, Findings& out) {
  if (!facts.is_real()) return;
  const std::string library = find_library();
  if (library.empty()) {
    out.push_back({"library", Level::finding, "libhummock.so.1 is not beside the tool",
                   "hummock run has nothing to preload", "",
                   "reinstall Hummock, or name the library: hummock run --lib"});
    return;
  }
  std::string why;
  try {
    why = trial(preloadable(library));
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (why.empty()) {
    out.push_back({"library", Level::fine, library + " loads and serves malloc", "", ""});
  } else {
    out.push_back({"library", Level::finding, library + " does not load: " + why,
                   "no program can run on Hummock", "", "build it on this machine, or for its libc"});
  }
}

// Does the environment ask for huge pages of the pool? The default does not.
bool asks_for_pool() {
  std::string asked;
  for (const auto& [variable, key] : {std::pair{"HUMMOCK_CONF", ""},
                                      {"HUMMOCK_HUGE_PAGES", "huge_pages:"},
                                      {"HUMMOCK_SPACE_WITH", "space_with:"},
                                      {"HUMMOCK_SPACE_HUGE", "space_huge:"}}) {
    const char* value = getenv(variable);
    if (value != nullptr) asked += std::string(key) + value + ",";
  }
  return std::regex_search(
      asked,
      std::regex("huge_pages[:=](2m|1g|require)|space_with[:=][^,]*huge|space_huge[:=](try|require|on)"));
}

// ---- The kernel ---------------------------------------------------------------------------------

void check_kernel(const Facts& facts, Findings& out) {
  const std::string release = facts.text("/proc/sys/kernel/osrelease").value_or("unknown");
  int major = 0, minor = 0;
  if (sscanf(release.c_str(), "%d.%d", &major, &minor) != 2) {
    out.push_back({"kernel", Level::note, release, "its version is unknown", ""});
    return;
  }
  const int version = major * 100 + minor;
  Finding finding{"kernel", Level::fine, "Linux " + release, "", "", ""};
  if (version < 514) {
    finding.level = Level::note;
    finding.consequence =
        "before 5.14 Hummock cannot populate memory before its use: huge_reserve has no effect on "
        "transparent "
        "huge pages, and a reserved page that is missing in the end kills the program";
  } else if (version < 601) {
    finding.level = Level::note;
    finding.consequence = "before 6.1 the kernel cannot move memory in use onto huge pages (MADV_COLLAPSE)";
  }
  out.push_back(finding);
}

void check_rseq(const Facts& facts, Findings& out) {
  if (!facts.is_real()) return;
  // Refused for its arguments: the call is there.
  const bool there = syscall(SYS_rseq, nullptr, 0, 0, 0) == 0 || errno != ENOSYS;
  out.push_back({"restartable sequences", Level::fine, there ? "yes" : "no",
                 there ? "" : "Hummock does not need them; tcmalloc would fall back to slower caches", ""});
}

// ---- Huge pages ---------------------------------------------------------------------------------

// Newer kernels have a mode for each size, which counts unless it is "inherit".
std::string thp_file(const Facts& facts) {
  const std::string own = std::string(kThp) + "hugepages-2048kB/enabled";
  return facts.chosen(own).value_or("inherit") == "inherit" ? std::string(kThp) + "enabled" : own;
}

void check_thp(const Facts& facts, Findings& out) {
  const std::string path = thp_file(facts);
  const std::optional<std::string> mode = facts.chosen(path);
  if (!mode) {
    out.push_back({"transparent huge pages", Level::finding, "this kernel has none",
                   "huge_pages:auto and huge_pages:thp have no effect", "",
                   "a kernel with CONFIG_TRANSPARENT_HUGEPAGE has them"});
    return;
  }
  Finding finding{"transparent huge pages", Level::fine, *mode, "", "", ""};
  if (*mode == "never") {
    finding.level = Level::finding;
    finding.consequence = "huge_pages:auto and huge_pages:thp have no effect";
    finding.fix = "echo madvise > " + path;
  } else if (*mode == "madvise") {
    finding.consequence =
        "Hummock asks for them where they help: huge_pages:auto (large heaps) or huge_pages:thp";
  } else if (*mode == "always") {
    finding.level = Level::note;
    finding.consequence =
        "every program takes 2 MiB where it touches a byte; Hummock keeps its first 32 MiB on small pages";
    finding.fix = "echo madvise > " + path;
  }
  out.push_back(finding);
  const std::optional<std::string> defrag = facts.chosen(std::string(kThp) + "defrag");
  if (!defrag || *mode == "never") return;
  Finding second{"defragmentation for huge pages", Level::fine, *defrag, "", "", ""};
  if (*defrag == "never") {
    second.level = Level::finding;
    second.consequence =
        "the kernel gives huge pages only while whole ones are free, which becomes rarer the longer the "
        "machine runs";
    second.fix = "echo defer+madvise > " + std::string(kThp) + "defrag";
  } else if (*defrag == "always") {
    second.level = Level::note;
    second.consequence = "any program may wait for memory to be moved when it touches new memory";
    second.fix = "echo madvise > " + std::string(kThp) + "defrag";
  }
  out.push_back(second);
}

void check_thp_of_process(const Facts& facts, Findings& out) {
  if (facts.field("/proc/self/status", "THP_enabled").value_or("1") != "0") return;
  out.push_back({"transparent huge pages of this session", Level::finding, "disabled by PR_SET_THP_DISABLE",
                 "a program started from here gets none, whatever its options", "",
                 "start the program from a session whose parent has not set it"});
}

void check_pool(const Facts& facts, Findings& out) {
  const std::string folder = std::string(kPools) + "hugepages-2048kB/";
  const std::optional<Number> all = facts.number(folder + "nr_hugepages");
  if (!all) {
    out.push_back({"reserved huge pages", Level::note, "this kernel has none of 2 MiB",
                   "huge_pages:2m, 1g and require get none", ""});
    return;
  }
  const Number free = facts.number(folder + "free_hugepages").value_or(0);
  const Number held = facts.number(folder + "resv_hugepages").value_or(0);
  const Number more = facts.number(folder + "nr_overcommit_hugepages").value_or(0);
  const Number surplus = facts.number(folder + "surplus_hugepages").value_or(0);
  const Number to_have = (free > held ? free - held : 0) + (more > surplus ? more - surplus : 0);
  std::ostringstream state;
  state << *all << " of 2 MiB (nr_hugepages), " << free << " free, " << more
        << " more on demand (nr_overcommit_hugepages)";
  Finding finding{"reserved huge pages", Level::fine, state.str(), "", "", ""};
  if (to_have < kPagesOfRegion) {
    // An eighth of the memory, on demand: nothing is taken from others before it is used.
    const Number kib = facts.number_field("/proc/meminfo", "MemTotal").value_or(0);
    const Number pages = std::max<Number>(64, kib / 2048 / 8);
    finding.level = asks_for_pool() ? Level::finding : Level::note;
    finding.consequence =
        "only matters if you ask for them: there are fewer than the 16 that the first region takes, so "
        "huge_pages:2m falls back to transparent ones and huge_pages:require does not start";
    finding.fix = "sysctl -w vm.nr_overcommit_hugepages=" + std::to_string(more + pages);
    finding.hint = "early, while memory is not fragmented; vm.nr_hugepages reserves them for good";
  }
  out.push_back(finding);
}

void check_giant_pool(const Facts& facts, Findings& out) {
  const std::string path = std::string(kPools) + "hugepages-1048576kB/nr_hugepages";
  const std::optional<Number> all = facts.number(path);
  if (!all) return;
  Finding finding{"huge pages of 1 GiB", Level::fine, std::to_string(*all) + " reserved", "", "", ""};
  if (*all == 0) {
    finding.level = Level::note;
    finding.consequence = "huge_pages:1g falls back to pages of 2 MiB";
    finding.fix = "echo 4 > " + path;
    finding.hint =
        "you get fewer while memory is fragmented; hugepagesz=1G hugepages=4 on the kernel's command line is "
        "certain";
  }
  out.push_back(finding);
}

// ---- Rights and limits --------------------------------------------------------------------------

bool has_capability(const Facts& facts, unsigned number) {
  const std::string set = facts.field("/proc/self/status", "CapEff").value_or("0");
  return (strtoull(set.c_str(), nullptr, 16) >> number & 1) != 0;
}

void check_rights(const Facts& facts, Findings& out) {
  constexpr unsigned kIpcLock = 14, kSysAdmin = 21;
  const std::string user = facts.field("/proc/self/status", "Uid").value_or("unknown");
  const bool lock = has_capability(facts, kIpcLock), admin = has_capability(facts, kSysAdmin);
  out.push_back({"rights", Level::fine,
                 "user " + user.substr(0, user.find_first_of(" \t")) + ", CAP_IPC_LOCK " +
                     (lock ? "yes" : "no") + ", CAP_SYS_ADMIN " + (admin ? "yes" : "no"),
                 admin ? "" : "the commands below need root; Hummock itself needs no rights for huge pages",
                 ""});
}

// "Max locked memory         8388608              8388608              bytes"; nothing: unlimited or unknown.
std::optional<Number> soft_limit(const Facts& facts, const std::string& name, bool* known) {
  const std::optional<std::string> line = facts.field("/proc/self/limits", name);
  *known = line.has_value();
  if (!line || line->compare(0, 9, "unlimited") == 0) return std::nullopt;
  return strtoull(line->c_str(), nullptr, 10);
}

void check_memlock(const Facts& facts, Findings& out) {
  bool known = false;
  const std::optional<Number> limit = soft_limit(facts, "Max locked memory", &known);
  if (!known) return;
  Finding finding{"locked memory limit", Level::fine, limit ? size_text(*limit) : "unlimited", "", "", ""};
  if (limit && *limit < kGiB && !has_capability(facts, 14)) {
    finding.level = Level::note;
    finding.consequence =
        "a space that is to be locked (space_with:lock), and what a program locks itself or takes of huge "
        "pages "
        "by shmget, can have no more than this; Hummock's huge pages need no such right";
    finding.fix = "ulimit -l unlimited";
    finding.hint =
        "root first raises the hard limit in /etc/security/limits.conf: * - memlock unlimited; then log in "
        "anew";
  } else if (limit && *limit < kGiB) {
    finding.consequence = "does not apply to this user, who has CAP_IPC_LOCK; for others: ulimit -l";
  }
  out.push_back(finding);
}

void check_limit(const Facts& facts, Findings& out, const char* topic, const char* name,
                 const char* command) {
  bool known = false;
  const std::optional<Number> limit = soft_limit(facts, name, &known);
  if (!known) return;
  Finding finding{topic, Level::fine, limit ? size_text(*limit) : "unlimited", "", "", ""};
  if (limit) {
    finding.level = *limit < 4 * kGiB ? Level::finding : Level::note;
    finding.consequence =
        "malloc returns null when the program has mapped this much, in use or not; Hummock maps 32 MiB "
        "at a time";
    finding.fix = command;
  }
  out.push_back(finding);
}

}  // namespace

std::vector<Finding> examine(const Facts& facts) {
  Findings out;
  if (!facts.text("/proc/meminfo") && !facts.text("/proc/sys/kernel/osrelease")) return out;
  check_library(facts, out);
  check_kernel(facts, out);
  check_memory(facts, out);
  check_thp(facts, out);
  check_thp_of_process(facts, out);
  check_pool(facts, out);
  check_giant_pool(facts, out);
  check_rights(facts, out);
  check_memlock(facts, out);
  check_limit(facts, out, "address space limit", "Max address space", "ulimit -v unlimited");
  check_limit(facts, out, "data limit", "Max data size", "ulimit -d unlimited");
  check_overcommit(facts, out);
  check_map_count(facts, out);
  check_cgroup(facts, out);
  check_pressure(facts, out);
  check_numa(facts, out);
  check_rseq(facts, out);
  return out;
}

}  // namespace hummock::tool
