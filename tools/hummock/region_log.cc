#include "region_log.h"

#include <algorithm>
#include <cstdio>
#include <istream>

namespace hummock::tool {
namespace {

constexpr const char* kFirst = "hummock ";
constexpr const char* kFirstEnd = " region log";
constexpr unsigned long long kMostKib = 1ull << 54;  // 2^64 bytes

// "    0.015s:    0.18ms     2048k at:0x7f00 Alloc LP (   2M) why"
bool read_event(const std::string& line, RegionEvent* out) {
  unsigned long long kib = 0, address = 0;
  int used = 0;
  if (sscanf(line.c_str(), " %lfs: %lfms %lluk at:0x%llx %n", &out->at, &out->took, &kib, &address, &used) !=
          4 ||
      used == 0) {
    return false;
  }
  const size_t open = line.find(" (", static_cast<size_t>(used));
  unsigned long long total = 0;
  int rest = 0;
  if (open == std::string::npos || sscanf(line.c_str() + open, " (%lluM)%n", &total, &rest) != 1 ||
      rest == 0) {
    return false;
  }
  // No program runs for 30 years, or maps more than there are addresses; nan and inf are numbers to scanf.
  if (!(out->at >= 0 && out->at < 1e9 && out->took >= 0 && out->took < 1e12)) return false;
  if (kib > kMostKib || total > kMostKib) return false;
  out->kib = kib;
  out->address = address;
  out->total_mib = total;
  out->what = line.substr(static_cast<size_t>(used), open - static_cast<size_t>(used));
  out->reason = line.substr(open + static_cast<size_t>(rest));
  out->reason.erase(0, out->reason.find_first_not_of(' '));
  return !out->what.empty();
}

// "figures:     0.298s live 1000k resident 2000k"
bool read_point(const std::string& line, RegionLog* log) {
  MemoryPoint point;
  unsigned long long live = 0, resident = 0;
  int used = 0;
  if (sscanf(line.c_str(), "figures: %lfs live %lluk resident %lluk%n", &point.at, &live, &resident, &used) !=
          3 ||
      static_cast<size_t>(used) != line.size())
    return false;
  if (!(point.at >= 0 && point.at < 1e9) || live > kMostKib || resident > kMostKib) return false;
  point.live_mib = static_cast<double>(live) / 1024;
  point.resident_mib = static_cast<double>(resident) / 1024;
  log->memory.push_back(point);
  return true;
}

bool read_fact(const std::string& line, RegionLog* log) {
  const size_t colon = line.find(": ");
  if (colon == std::string::npos || colon == 0) return line == "events:";
  const std::string name = line.substr(0, colon), value = line.substr(colon + 2);
  if (name == "option") {
    log->options.push_back(value);
  } else if (name == "summary") {
    log->ended = true;
  } else if (name.rfind("summary ", 0) == 0) {
    log->summary.emplace_back(name.substr(8), value);
  } else {
    log->facts.emplace_back(name, value);
  }
  return true;
}

bool is_first(const std::string& line) {
  return line.rfind(kFirst, 0) == 0 && line.find(kFirstEnd) != std::string::npos;
}

}  // namespace

std::string RegionLog::fact(const std::string& name) const {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& f) { return f.first == name; });
  return found == facts.end() ? "" : found->second;
}

double end_of(const RegionLog& log) {
  return std::max(log.events.empty() ? 0 : log.events.back().at,
                  log.memory.empty() ? 0 : log.memory.back().at);
}

std::vector<RegionLog> read_region_logs(std::istream& in) {
  std::vector<RegionLog> logs;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();  // written on Windows
    if (is_first(line)) {
      logs.emplace_back();
      const size_t from = std::string(kFirst).size();
      logs.back().version = line.substr(from, line.find(kFirstEnd) - from);
      continue;
    }
    if (logs.empty()) return {};
    RegionEvent event;
    if (read_event(line, &event)) {
      logs.back().events.push_back(event);
    } else if (!line.empty() && !read_point(line, &logs.back()) && !read_fact(line, &logs.back())) {
      ++logs.back().not_understood;
    }
  }
  // Threads write in the order in which they come to it, which is nearly that of time.
  for (RegionLog& log : logs) {
    std::stable_sort(log.events.begin(), log.events.end(),
                     [](const RegionEvent& a, const RegionEvent& b) { return a.at < b.at; });
    std::stable_sort(log.memory.begin(), log.memory.end(),
                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.at < b.at; });
  }
  return logs;
}

std::string verdict(const RegionLog& log) {
  uint64_t large = 0, advised = 0, collapsed = 0, small = 0;
  const RegionEvent* failure = nullptr;
  for (const RegionEvent& event : log.events) {
    if (event.failed()) {
      if (event.is("Alloc LP") || event.is("Alloc THP")) failure = &event;
    } else if (event.is("Alloc LP")) {
      large += event.kib;
    } else if (event.is("Alloc THP")) {
      advised += event.kib;
    } else if (event.is("Collapse")) {
      collapsed += event.kib;
    } else if (event.is("Alloc SP")) {
      small += event.kib;
    }
  }
  if (advised == 0) advised = collapsed;  // else of the same memory
  const auto mib = [](uint64_t kib) { return std::to_string(kib >> 10) + " MiB"; };
  std::string text;
  if (large != 0) {
    text = "Large pages are on: " + mib(large) + " stand on reserved ones";
    if (advised != 0) text += ", " + mib(advised) + " on transparent ones as far as the kernel gives them";
  } else if (advised != 0) {
    text = "Large pages are on: transparent ones for " + mib(advised) + ", as far as the kernel gives them";
  } else {
    text = "Large pages are not used";
  }
  text += "; " + mib(small) + " on small pages.";
  if (failure != nullptr) text += " Last fallback: " + failure->what + " (" + failure->reason + ").";
  return text;
}

}  // namespace hummock::tool
