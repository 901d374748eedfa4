#include "figures_text.h"

#include <hummock/observe.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "amounts.h"

namespace hummock::tool {
namespace {

using Out = std::back_insert_iterator<std::string>;

// How much of the memory of a class's slabs no live block has, in percent.
unsigned fragmentation(const hummock_page_class_t& row) {
  const uint64_t held = held_bytes(row);
  if (held == 0 || used_bytes(row) >= held) return 0;
  return static_cast<unsigned>(100.0 *
                               (1.0 - static_cast<double>(used_bytes(row)) / static_cast<double>(held)));
}

std::string tag_text(const hummock_page_tag_t& row) {
  return row.tag == HUMMOCK_TAG_OTHERS ? "others" : fmt::format("{}", row.tag);
}

void add_bytes(Out out, const char* name, uint64_t bytes, const std::string& meaning) {
  fmt::format_to(out, "  {:<14}{:>10}  {}\n", name, bytes_text(bytes), meaning);
}

void add_count(Out out, const char* name, uint64_t count, const char* meaning) {
  fmt::format_to(out, "  {:<14}{:>10}  {}\n", name, count, meaning);
}

void add_classes(Out out, const hummock_figures_t& f) {
  fmt::format_to(out, "{:>10} {:>9} {:>11} {:>9} {:>9} {:>9} {:>6}\n", "block", "slabs", "live", "bytes",
                 "held", "purged", "free");
  for_rows(f.classes, f.class_count, [&](const hummock_page_class_t& row) {
    fmt::format_to(out, "{:>10} {:>9} {:>11} {:>9} {:>9} {:>9} {:>5}%\n", row.block_size, row.slabs,
                   row.live_blocks, bytes_text(used_bytes(row)), bytes_text(held_bytes(row)),
                   bytes_text(row.purged), fragmentation(row));
  });
}

void add_threads(Out out, const hummock_figures_t& f) {
  constexpr uint32_t kMost = 16;
  std::vector<hummock_page_thread_t> rows(f.thread, f.thread + f.thread_count);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.cached > b.cached; });
  fmt::format_to(out, "{:>10} {:>9} {:>9}\n", "thread", "cache", "earned");
  for (size_t i = 0; i < rows.size() && i < kMost; ++i) {
    fmt::format_to(out, "{:>10} {:>9} {:>9}\n", rows[i].id, bytes_text(rows[i].cached),
                   bytes_text(rows[i].earned));
  }
  if (f.threads > kMost)
    fmt::format_to(out, "  … and {} more\n", f.threads - std::min<size_t>(rows.size(), kMost));
}

void add_heaps(Out out, const hummock_figures_t& f) {
  if (f.heap_count == 0) return;
  fmt::format_to(out, "{:>10} {:>9} {:>9} {:>9}\n", "heap", "live", "held", "slabs");
  for_rows(f.heap, f.heap_count, [&](const hummock_page_heap_t& row) {
    fmt::format_to(out, "{:>10} {:>9} {:>9} {:>9}  {}\n", row.number, bytes_text(row.live),
                   bytes_text(row.bytes), row.slabs, row.name);
  });
}

void add_spaces(Out out, const hummock_figures_t& f) {
  if (f.space_count == 0) return;
  fmt::format_to(out, "{:>10} {:>9} {:>9} {:>9} {:>9}\n", "space", "used", "peak", "refused", "blocks");
  for_rows(f.space, f.space_count, [&](const hummock_page_space_t& row) {
    fmt::format_to(out, "{:>10} {:>9} {:>9} {:>9} {:>9}  {}\n", bytes_text(row.bytes), bytes_text(row.used),
                   bytes_text(row.peak), row.failures, row.live_blocks, row.name);
  });
}

// Where no tag was ever set there is nothing to tell apart.
void add_tags(Out out, const hummock_figures_t& f) {
  if (f.tag_count < 2) return;
  fmt::format_to(out, "{:>10} {:>9} {:>11}\n", "tag", "drawn", "blocks");
  for_rows(f.tags, f.tag_count, [&](const hummock_page_tag_t& row) {
    fmt::format_to(out, "{:>10} {:>9} {:>11}\n", tag_text(row), bytes_text(row.bytes), row.blocks);
  });
}

// The time below which so many in a hundred of the timed calls were; 0: longer than any bound.
uint64_t quantile(const hummock_figures_t& f, unsigned percent, uint64_t all) {
  uint64_t below = 0;
  for (unsigned i = 0; i + 1 < HUMMOCK_PAGE_TIMES; ++i) {
    below += f.slow_calls[i];
    if (below * 100 >= all * percent) return uint64_t{64} << i;
  }
  return 0;
}

std::string time_text(uint64_t ns) {
  if (ns == 0) return "long";
  return ns < 10000      ? fmt::format("{} ns", ns)
         : ns < 10000000 ? fmt::format("{} us", ns / 1000)
                         : fmt::format("{} ms", ns / 1000000);
}

void add_times(Out out, const hummock_figures_t& f) {
  const uint64_t all = std::accumulate(f.slow_calls, f.slow_calls + HUMMOCK_PAGE_TIMES, uint64_t{0});
  if (all == 0) return;
  fmt::format_to(out, "  slow calls: half below {}, 99% below {}, mean {} ({} timed, one in 256)\n",
                 time_text(quantile(f, 50, all)), time_text(quantile(f, 99, all)), time_text(f.slow_ns / all),
                 all);
}

// ---- Metrics --------------------------------------------------------------------------------------

struct Metric {
  const char* name;
  const char* unit;  // empty: a number of things
  bool counter;
  const char* help;
  uint64_t (*value)(const Snapshot&);
};

#define HUMMOCK_FIGURE(name) [](const Snapshot& s) -> uint64_t { return s.page.figures.name; }
constexpr Metric kMetrics[] = {
    {"hummock_live_bytes", "bytes", false, "Usable size of live blocks, thread caches included",
     HUMMOCK_FIGURE(live)},
    {"hummock_committed_bytes", "bytes", false, "Slabs and large blocks, which hold the live blocks",
     HUMMOCK_FIGURE(committed)},
    {"hummock_dirty_bytes", "bytes", false, "Free memory not yet returned to the system",
     HUMMOCK_FIGURE(dirty)},
    {"hummock_cached_bytes", "bytes", false, "Room in thread caches", HUMMOCK_FIGURE(cached)},
    {"hummock_mapped_bytes", "bytes", false, "Address space", HUMMOCK_FIGURE(mapped)},
    {"hummock_metadata_bytes", "bytes", false, "The allocator's own records", HUMMOCK_FIGURE(metadata)},
    {"hummock_peak_bytes", "bytes", false, "Highest committed and dirty so far", HUMMOCK_FIGURE(peak)},
    {"hummock_large_bytes", "bytes", false, "Blocks above 64 KiB", HUMMOCK_FIGURE(large_bytes)},
    {"hummock_large_blocks", "", false, "Number of blocks above 64 KiB", HUMMOCK_FIGURE(large_blocks)},
    {"hummock_threads", "", false, "Threads with a heap", HUMMOCK_FIGURE(threads)},
    {"hummock_heaps", "", false, "First-class heaps", HUMMOCK_FIGURE(heaps)},
    {"hummock_limit_soft_bytes", "bytes", false, "The soft limit, 0 for none", HUMMOCK_FIGURE(limit_soft)},
    {"hummock_limit_hard_bytes", "bytes", false, "The hard limit, 0 for none", HUMMOCK_FIGURE(limit_hard)},
    {"hummock_limit_refusals", "", true, "Requests refused by the hard limit",
     HUMMOCK_FIGURE(limit_refusals)},
    {"hummock_purged_bytes", "bytes", true, "Returned to the system so far", HUMMOCK_FIGURE(purged)},
    {"hummock_drawn_bytes", "bytes", true, "Drawn from slabs by thread caches, and large blocks, so far",
     HUMMOCK_FIGURE(drawn_bytes)},
    {"hummock_drawn_blocks", "", true, "Their number", HUMMOCK_FIGURE(drawn_blocks)},
    {"hummock_reused_bytes", "bytes", true, "Free memory that was used again before it was returned",
     HUMMOCK_FIGURE(reused)},
    {"hummock_huge_refusals", "", true, "Requests for huge pages refused", HUMMOCK_FIGURE(huge_refusals)},
    {"hummock_resident_bytes", "bytes", false, "Resident memory of the process, as the system counts it",
     [](const Snapshot& s) -> uint64_t { return s.resident; }},
};

std::string label(const std::string& text) {
  std::string escaped;
  for (const char c : ascii(text)) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string labels(const Snapshot& s) {
  return fmt::format("pid=\"{}\",program=\"{}\",cgroup=\"{}\"", s.pid, label(s.program), label(s.cgroup));
}

// In OpenMetrics a counter's samples end in _total and its description does not.
void describe(Out out, Format format, const std::string& name, const char* unit, const std::string& type,
              const char* help) {
  const std::string full = type == "counter" && format == Format::text ? name + "_total" : name;
  fmt::format_to(out, "# HELP {} {}.\n# TYPE {} {}\n", full, help, full, type);
  if (unit[0] != '\0' && format == Format::open_metrics) fmt::format_to(out, "# UNIT {} {}\n", name, unit);
}

void add_class_metric(Out out, Format format, const std::vector<Snapshot>& snapshots, const char* name,
                      const char* help, uint64_t (*value)(const hummock_page_class_t&)) {
  describe(out, format, name, "bytes", "gauge", help);
  for (const Snapshot& s : snapshots) {
    for_rows(s.page.figures.classes, s.page.figures.class_count, [&](const hummock_page_class_t& row) {
      fmt::format_to(out, "{}{{{},block_size=\"{}\"}} {}\n", name, labels(s), row.block_size, value(row));
    });
  }
}

void add_tag_metric(Out out, Format format, const std::vector<Snapshot>& snapshots) {
  describe(out, format, "hummock_tag_drawn_bytes", "bytes", "counter",
           "Drawn from slabs by threads with a tag");
  for (const Snapshot& s : snapshots) {
    for_rows(s.page.figures.tags, s.page.figures.tag_count, [&](const hummock_page_tag_t& row) {
      fmt::format_to(out, "hummock_tag_drawn_bytes_total{{{},tag=\"{}\"}} {}\n", labels(s), tag_text(row),
                     row.bytes);
    });
  }
}

// Those timed, one in 256 of all.
void add_time_metric(Out out, Format format, const std::vector<Snapshot>& snapshots) {
  constexpr const char* kName = "hummock_slow_call_seconds";
  describe(out, format, kName, "seconds", "histogram", "Calls that fill a thread cache, one in 256 of them");
  for (const Snapshot& s : snapshots) {
    const hummock_figures_t& f = s.page.figures;
    uint64_t below = 0;
    for (unsigned i = 0; i + 1 < HUMMOCK_PAGE_TIMES; ++i) {
      below += f.slow_calls[i];
      fmt::format_to(out, "{}_bucket{{{},le=\"{:g}\"}} {}\n", kName, labels(s),
                     static_cast<double>(uint64_t{64} << i) / 1e9, below);
    }
    below += f.slow_calls[HUMMOCK_PAGE_TIMES - 1];
    fmt::format_to(out, "{}_bucket{{{},le=\"+Inf\"}} {}\n", kName, labels(s), below);
    fmt::format_to(out, "{}_sum{{{}}} {:g}\n{}_count{{{}}} {}\n", kName, labels(s),
                   static_cast<double>(f.slow_ns) / 1e9, kName, labels(s), below);
  }
}

}  // namespace

std::string ascii(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c >= 127; }, '?');
  return text;
}

uint64_t used_bytes(const hummock_page_class_t& row) {
  return row.live_blocks * row.block_size;
}

uint64_t held_bytes(const hummock_page_class_t& row) {
  const uint64_t without = row.purged + row.untouched;
  return row.bytes > without ? row.bytes - without : 0;
}

std::string json_of(const Snapshot& s) {
  const observe::Described what = {&s.page.figures,  static_cast<uint32_t>(s.pid), s.program.c_str(),
                                   s.cgroup.c_str(), s.page.head.library,          s.age_ms,
                                   s.resident};
  std::string text(observe::write_json(what, nullptr, 0), '\0');
  observe::write_json(what, text.data(), text.size() + 1);
  return text;
}

std::string report(const Snapshot& s) {
  const hummock_figures_t& f = s.page.figures;
  std::string text;
  const Out out(text);
  fmt::format_to(
      out, "{} ({}), Hummock {}, {}\n", ascii(s.program), s.pid, s.page.head.library,
      s.fresh ? "now" : fmt::format("as of {:.1f} s ago: no call since has answered", s.age_ms / 1000.0));
  add_bytes(out, "live", f.live, "usable size of live blocks, thread caches included");
  add_bytes(out, "committed", f.committed, "slabs and large blocks that hold them");
  add_bytes(out, "dirty", f.dirty, "free, not yet returned");
  add_bytes(out, "resident", s.resident, "whole process, as the system counts it");
  add_bytes(out, "cached", f.cached, "room in thread caches");
  add_bytes(out, "mapped", f.mapped, "address space");
  add_bytes(out, "peak", f.peak, "highest committed + dirty");
  add_bytes(out, "metadata", f.metadata, "the allocator's own");
  add_bytes(out, "purged", f.purged, "returned so far");
  add_bytes(out, "reused", f.reused,
            fmt::format("used again before it was returned: up to {} page faults avoided", f.reused / 4096));
  add_bytes(out, "drawn", f.drawn_bytes,
            fmt::format("by thread caches from slabs, and large blocks: {} blocks", f.drawn_blocks));
  add_bytes(out, "large", f.large_bytes, "blocks above 64 KiB");
  add_count(out, "large blocks", f.large_blocks, "their number");
  add_count(out, "threads", f.threads, "with a heap");
  add_count(out, "heaps", f.heaps, "made by the program");
  if (f.limit_soft != 0) add_bytes(out, "soft limit", f.limit_soft, "above it no free memory is kept");
  if (f.limit_hard != 0) add_bytes(out, "hard limit", f.limit_hard, "above it malloc fails");
  if (f.limit_hard != 0) add_count(out, "refusals", f.limit_refusals, "requests that it refused");
  add_classes(out, f);
  add_threads(out, f);
  add_heaps(out, f);
  add_spaces(out, f);
  add_tags(out, f);
  add_times(out, f);
  return text;
}

std::string list(const std::vector<Snapshot>& snapshots) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{:>8} {:<16} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}\n", "PID", "PROGRAM", "RESIDENT",
                 "LIVE", "COMMITTED", "DIRTY", "THREADS", "AGE");
  for (const Snapshot& s : snapshots) {
    const hummock_figures_t& f = s.page.figures;
    fmt::format_to(out, "{:>8} {:<16} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7.1f}s\n", s.pid, ascii(s.program),
                   bytes_text(s.resident), bytes_text(f.live), bytes_text(f.committed), bytes_text(f.dirty),
                   f.threads, s.age_ms / 1000.0);
  }
  return text;
}

std::string metrics(const std::vector<Snapshot>& snapshots, Format format) {
  std::string text;
  const Out out(text);
  for (const Metric& metric : kMetrics) {
    describe(out, format, metric.name, metric.unit, metric.counter ? "counter" : "gauge", metric.help);
    for (const Snapshot& s : snapshots) {
      fmt::format_to(out, "{}{}{{{}}} {}\n", metric.name, metric.counter ? "_total" : "", labels(s),
                     metric.value(s));
    }
  }
  describe(out, format, "hummock_age_seconds", "seconds", "gauge", "Since the figures were taken");
  for (const Snapshot& s : snapshots) {
    fmt::format_to(out, "hummock_age_seconds{{{}}} {:.3f}\n", labels(s), s.age_ms / 1000.0);
  }
  add_class_metric(out, format, snapshots, "hummock_class_live_bytes", "Live blocks of a size class",
                   used_bytes);
  add_class_metric(out, format, snapshots, "hummock_class_held_bytes", "Memory of the slabs of a size class",
                   held_bytes);
  add_tag_metric(out, format, snapshots);
  add_time_metric(out, format, snapshots);
  if (format == Format::open_metrics) text += "# EOF\n";
  return text;
}

}  // namespace hummock::tool
