#include "spaces.h"

#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "amounts.h"
#include "processes.h"
#include "space/cache.h"

namespace hummock::tool {
namespace {

constexpr size_t kMapCells = 256;
constexpr size_t kMapWidth = 64;
constexpr size_t kMostSpaces = 4096;  // a chain that is longer was read while it changed

// The memory of the process that is looked at.
class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}

  bool read(uint64_t address, void* to, size_t size) const {
    iovec here = {to, size};
    iovec there = {reinterpret_cast<void*>(address), size};
    return process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  }
  template <class T>
  std::optional<T> get(uint64_t address) const {
    T value;
    return read(address, &value, sizeof(T)) ? std::optional<T>(value) : std::nullopt;
  }

  // Where the internal space lies, whose head leads to all others: at the beginning of a mapping.
  std::optional<uint64_t> find_internal() const {
    std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(" rw-p ") == std::string::npos) continue;
      const uint64_t start = std::stoull(line, nullptr, 16);
      struct Head {
        uint64_t magic;
        uint32_t version, control_size;
      };
      const auto head = get<Head>(start);
      if (!head || head->magic != space::kMagic || head->version != space::kVersion) continue;
      if (head->control_size != sizeof(space::Control)) continue;
      const auto control = get<space::Control>(start);
      if (control && control->internal != 0) return start;
    }
    return std::nullopt;
  }

 private:
  pid_t pid_;
};

struct SpaceRow {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0, used = 0, free = 0, peak = 0, largest = 0, ranges = 0, cache = 0, live = 0, failures = 0;
  uint64_t maximum = 0, largest_request = 0, largest_refused = 0, recoveries = 0;
  uint32_t achieved = 0;
  std::string threads, policy;
  std::string map;
};

std::string achieved_text(uint32_t bits) {
  std::string text;
  const char* names[] = {"populated", "locked", "huge", "nofork", "shared"};
  for (unsigned i = 0; i < 5; ++i) {
    if ((bits >> i & 1) != 0) text += (text.empty() ? "" : ",") + std::string(names[i]);
  }
  return text.empty() ? "-" : text;
}

uint64_t largest_free(const Memory& process, uint64_t engine_at, const space::Engine& engine) {
  const auto top = [](uint64_t bits) { return 63 - static_cast<uint64_t>(__builtin_clzll(bits)); };
  if (engine.policy == space::Policy::proven) {
    const uint64_t behind = engine.end - engine.frontier;
    const uint64_t cut = behind < space::kLeastBlock ? 0 : uint64_t{1} << top(behind);
    return std::max(cut, engine.levels == 0 ? 0 : uint64_t{1} << top(engine.levels));
  }
  const uint64_t open = engine.open == 0 ? 0 : engine.open_size;
  if (engine.levels == 0 || top(engine.levels) > space::kLevels) return open;
  const uint64_t level = top(engine.levels);
  if (engine.words[level] == 0) return open;
  const auto first =
      process.get<uint64_t>(engine_at + ((level << 6) + top(engine.words[level])) * sizeof(uint64_t));
  if (!first || *first == 0) return open;
  const auto header = process.get<uint64_t>(engine_at + *first - space::kHeader);
  return std::max(open, header ? space::size_in(*header) : 0);
}

constexpr const char* kLevels = " .:-=+*%@#";

// How full each 256th of the blocks' extent is.
class Map {
 public:
  explicit Map(uint64_t extent) : extent_(extent), used_(kMapCells, 0) {}

  // The bytes from…to are in a block.
  void add(uint64_t from, uint64_t to) {
    for (size_t cell = from * kMapCells / extent_; cell < kMapCells && start_of(cell) < to; ++cell) {
      const uint64_t low = std::max(from, start_of(cell));
      const uint64_t high = std::min(to, start_of(cell + 1));
      if (high > low) used_[cell] += high - low;
    }
  }

  // One character a cell; '?' behind `known` bytes.
  std::string text(uint64_t known) const {
    std::string text;
    for (size_t cell = 0; cell < kMapCells; ++cell) {
      const uint64_t length = std::max<uint64_t>(1, start_of(cell + 1) - start_of(cell));
      const uint64_t level = std::min<uint64_t>(9, (used_[cell] * 9 + length - 1) / length);
      text += start_of(cell) >= known ? '?' : kLevels[level];
    }
    return text;
  }

 private:
  uint64_t start_of(size_t cell) const { return extent_ * cell / kMapCells; }  // an extent has 39 bits

  uint64_t extent_;
  std::vector<uint64_t> used_;
};

// The process goes on meanwhile, so a walk that leads nowhere ends the map.
std::string fragmentation(const Memory& process, uint64_t engine_at, const space::Engine& engine) {
  if (engine.end <= engine.first || engine.end > space::kMostSpace) return "";
  Map map(engine.end - engine.first);
  // In other spaces the bit of a block at rest says something else.
  const uint64_t unused = space::kFree | (space::has_records(&engine) ? space::kResting : 0);
  uint64_t at = engine.first;
  while (at < engine.end) {
    const auto header = process.get<uint64_t>(engine_at + at - space::kHeader);
    if (!header || !space::is_sealed(*header, at)) break;
    const uint64_t size = space::size_in(*header);
    if (size < space::kGranule || size > engine.end - at) break;
    if ((*header & unused) == 0) map.add(at - engine.first, at - engine.first + size);
    at += size;
  }
  return map.text(at - engine.first);
}

std::optional<SpaceRow> look_at(const Memory& process, uint64_t address, bool map) {
  const auto control = process.get<space::Control>(address);
  const uint64_t engine_at = address + sizeof(space::Control);
  const auto engine = process.get<space::Engine>(engine_at);
  if (!control || !engine || control->magic != space::kMagic) return std::nullopt;
  SpaceRow row;
  row.name.assign(control->name, strnlen(control->name, sizeof control->name));
  row.address = address;
  constexpr unsigned kMostCaches = 1 << 16;  // the chain may change while we follow it
  uint64_t at = control->caches;
  for (unsigned i = 0; at != 0 && i < kMostCaches; ++i) {
    const auto cache = process.get<space::Cache>(engine_at + at);
    if (!cache) break;
    row.cache += cache->free_bytes;
    at = cache->next;
  }
  if (space::has_records(&*engine)) {
    const auto rest = process.get<uint64_t>(engine_at + engine->lists * sizeof(uint64_t));
    if (rest) row.cache += *rest;  // the first word of the record
  }
  row.size = control->bytes;
  row.used = engine->used - control->own - std::min(row.cache, engine->used - control->own);
  row.free = engine->end - engine->first - engine->used + row.cache;
  row.peak = engine->peak;
  row.largest = largest_free(process, engine_at, *engine);
  row.ranges = engine->ranges;
  row.live = engine->live;
  row.failures = engine->failures;
  row.maximum = control->maximum;
  row.largest_request = engine->largest_request;
  row.largest_refused = engine->largest_refused;
  row.recoveries = control->recoveries;
  row.achieved = control->achieved;
  row.threads = control->threads == space::Threads::owner  ? "owner"
                : control->threads == space::Threads::spin ? "spin"
                                                           : "inherit";
  row.policy = engine->policy == space::Policy::proven ? "proven" : "dense";
  if (map) row.map = fragmentation(process, engine_at, *engine);
  return row;
}

std::vector<SpaceRow> look(const Memory& process, uint64_t internal, bool map) {
  std::vector<SpaceRow> rows;
  if (auto row = look_at(process, internal, map)) rows.push_back(*row);
  const auto control = process.get<space::Control>(internal);
  uint64_t handle_at = control ? control->root : 0;
  while (handle_at != 0 && rows.size() < kMostSpaces) {
    const auto handle = process.get<space::Space>(handle_at);
    if (!handle) break;
    if (auto row = look_at(process, reinterpret_cast<uint64_t>(handle->control), map)) rows.push_back(*row);
    handle_at = reinterpret_cast<uint64_t>(handle->next);
  }
  return rows;
}

uint64_t key_of(const SpaceRow& row, const std::string& column) {
  const std::pair<const char*, uint64_t> keys[] = {
      {"size", row.size},   {"used", row.used},       {"free", row.free},
      {"peak", row.peak},   {"largest", row.largest}, {"ranges", row.ranges},
      {"cache", row.cache}, {"live", row.live},       {"failures", row.failures}};
  for (const auto& [name, value] : keys) {
    if (column == name) return value;
  }
  return 0;
}

void sort_rows(std::vector<SpaceRow>* rows, const std::string& column) {
  std::stable_sort(rows->begin(), rows->end(), [&](const SpaceRow& a, const SpaceRow& b) {
    return column == "name" ? a.name < b.name : key_of(a, column) > key_of(b, column);
  });
}

void print_table(const std::vector<SpaceRow>& rows) {
  printf("%-16s %8s %8s %8s %8s %8s %8s %8s %9s %8s  %s\n", "NAME", "SIZE", "USED", "FREE", "PEAK", "LARGEST",
         "RANGES", "CACHE", "LIVE", "FAILURES", "KIND");
  for (const SpaceRow& row : rows) {
    printf("%-16s %8s %8s %8s %8s %8s %8llu %8s %9llu %8llu  %s %s %s\n",
           row.name.empty() ? "-" : printable(row.name).c_str(), bytes_text(row.size).c_str(),
           bytes_text(row.used).c_str(), bytes_text(row.free).c_str(), bytes_text(row.peak).c_str(),
           bytes_text(row.largest).c_str(), static_cast<unsigned long long>(row.ranges),
           bytes_text(row.cache).c_str(), static_cast<unsigned long long>(row.live),
           static_cast<unsigned long long>(row.failures), row.policy.c_str(), row.threads.c_str(),
           achieved_text(row.achieved).c_str());
    for (size_t at = 0; at < row.map.size(); at += kMapWidth)
      printf("  |%s|\n", row.map.substr(at, kMapWidth).c_str());
  }
  if (std::any_of(rows.begin(), rows.end(), [](const SpaceRow& row) { return !row.map.empty(); })) {
    printf(
        "Each mark is a 256th of its space, in order of address: blank is free, then \"%s\" from a ninth in "
        "use "
        "to all; ? is unknown.\n",
        kLevels + 1);
  }
}

void print_json(const std::vector<SpaceRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SpaceRow& row : rows) {
    char address[24];
    snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(row.address));
    nlohmann::ordered_json one = {{"name", row.name},
                                  {"address", address},
                                  {"size", row.size},
                                  {"used", row.used},
                                  {"free", row.free},
                                  {"peak", row.peak},
                                  {"largest", row.largest},
                                  {"ranges", row.ranges},
                                  {"cache", row.cache},
                                  {"live", row.live},
                                  {"failures", row.failures},
                                  {"maximum", row.maximum},
                                  {"largest_request", row.largest_request},
                                  {"largest_refused", row.largest_refused},
                                  {"recoveries", row.recoveries},
                                  {"policy", row.policy},
                                  {"threads", row.threads},
                                  {"achieved", achieved_text(row.achieved)}};
    if (!row.map.empty()) one["map"] = row.map;
    list.push_back(one);
  }
  // A name is the program's own bytes.
  printf("%s\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

int complain(const std::string& what) {
  fprintf(stderr, "hummock spaces: %s\n", what.c_str());
  return 1;
}

int complain(int pid, const std::string& what) {
  return complain("process " + std::to_string(pid) + ": " + what);
}

// Where the process's chain of spaces begins; else *why.
std::optional<uint64_t> begin_of(int pid, const Memory& process, std::string* why) {
  const std::string refused = "its memory cannot be read: try as root";
  if (kill(pid, 0) != 0 && errno == ESRCH) return *why = "there is no such process", std::nullopt;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  if (!maps) return *why = refused, std::nullopt;
  std::string line;
  if (!std::getline(maps, line)) return *why = "it has no memory: it has ended", std::nullopt;
  char probe;
  if (!process.read(std::stoull(line, nullptr, 16), &probe, 1) && errno == EPERM)
    return *why = refused, std::nullopt;
  const auto internal = process.find_internal();
  if (!internal) *why = "it has no spaces";
  return internal;
}

int watch(int pid, const SpacesOptions& options) {
  const Memory process(pid);
  std::string why;
  const auto internal = begin_of(pid, process, &why);
  if (!internal) return complain(pid, why);
  const bool clears = options.every != 0 && !options.json && isatty(STDOUT_FILENO) != 0;
  for (;;) {
    std::vector<SpaceRow> rows = look(process, *internal, options.map);
    if (rows.empty()) return options.every != 0 ? 0 : complain(pid, "it has ended");
    sort_rows(&rows, options.sort);
    if (clears) printf("\033[H\033[2J");
    options.json ? print_json(rows) : print_table(rows);
    fflush(stdout);
    if (options.every == 0) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.every));
  }
}

}  // namespace

int spaces(const SpacesOptions& options) {
  const std::vector<int> pids = find_processes(options.which);
  if (pids.empty()) return complain("there is no process " + options.which);
  if (pids.size() == 1) return watch(pids.front(), options);
  std::string numbers;
  for (const int pid : pids) numbers += " " + std::to_string(pid);
  return complain(std::to_string(pids.size()) + " processes match " + options.which +
                  "; name one by its number:" + numbers);
}

}  // namespace hummock::tool
