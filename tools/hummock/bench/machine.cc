#include "bench/machine.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

namespace hummock::tool {
namespace {

// The value of the first line "NAME<separator>VALUE" of a file.
std::string field_of(const char* file, const std::string& name, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(separator);
    if (at == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t end = line.find_last_not_of(" \t\"");
    return start == std::string::npos ? "" : line.substr(start, end - start + 1);
  }
  return "";
}

std::string first_line(const char* file) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  return line;
}

// "always [madvise] never": the one in brackets.
std::string huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t start = line.find('['), end = line.find(']');
  return start == std::string::npos || end == std::string::npos ? "unknown"
                                                                : line.substr(start + 1, end - start - 1);
}

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

std::string processor() {
  std::string name = field_of("/proc/cpuinfo", "model name", ':');
  if (name.empty()) name = field_of("/proc/cpuinfo", "CPU part", ':');
  return name.empty() ? "unknown" : name;
}

// Variables that change how an allocator behaves.
Json settings() {
  Json settings = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const char* prefix :
         {"HUMMOCK_", "MALLOC_", "GLIBC_TUNABLES", "MIMALLOC_", "TCMALLOC_", "TBB_MALLOC_"}) {
      const char* equals = strchr(*entry, '=');
      if (strncmp(*entry, prefix, strlen(prefix)) == 0 && equals != nullptr)
        settings[std::string(*entry, static_cast<std::size_t>(equals - *entry))] = equals + 1;
    }
  }
  return settings;
}

}  // namespace

Json machine_facts() {
  utsname kernel = {};
  uname(&kernel);
  struct sysinfo memory = {};
  sysinfo(&memory);
  double load = 0;
  getloadavg(&load, 1);
  return {{"cpu", processor()},
          {"architecture", kernel.machine},
          {"cores", usable_cores()},
          {"memory_bytes", static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit},
          {"kernel", std::string(kernel.sysname) + " " + kernel.release},
          {"distribution", field_of("/etc/os-release", "PRETTY_NAME", '=')},
          {"compiler", HUMMOCK_BUILD_COMPILER},
          {"flags", HUMMOCK_BUILD_FLAGS},
          {"thp", huge_pages()},
          {"page_size", sysconf(_SC_PAGESIZE)},
          {"governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
          {"load_before", load},
          {"environment", settings()}};
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace hummock::tool
