// The picture of a region log: one HTML file with drawings in it, no script, nothing fetched.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <ostream>

#include "region_log.h"

namespace hummock::tool {
namespace {

constexpr double kWidth = 1000, kLeft = 70, kRight = 20, kTop = 14, kBottom = 30;
constexpr size_t kMostMarks = 4000;  // drawn; a browser is slow with more
constexpr size_t kMostRows = 2000;   // of the table of events

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6676; --line: #d8dde4; --ground: #ffffff;
  --area: #4c78a855; --edge: #2f5d8a; --lp: #16803c; --thp: #3f9e9e; --sp: #4c78a8; --free: #8a6d3b;
  --purge: #9b6ac4; --failed: #c62828; --resident: #c8500a; --live: #00755c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b6; --line: #38414d; --ground: #14181d;
  --edge: #7fb2e5; --lp: #4cc37a; --thp: #6fd0d0; --sp: #86b3e0; --free: #d0ad6a; --purge: #c59be8;
  --failed: #ff7a70; --resident: #ff8a3d; --live: #2cc9a0; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto;
  max-width: 68rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; min-width: 40rem; height: auto; display: block; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } .area { fill: var(--area); stroke: var(--edge); stroke-width: 1.5; }
.lp { fill: var(--lp); } .thp { fill: var(--thp); } .sp { fill: var(--sp); } .free { fill: var(--free); }
path.resident { stroke: var(--resident); } path.live { stroke: var(--live); }
path.resident, path.live { fill: none; stroke-width: 2; } .mapped { fill: var(--edge); }
.resident-dot { fill: var(--resident); } .live-dot { fill: var(--live); }
.purge { fill: var(--purge); } .failed { fill: var(--failed); }
.legend span { margin-right: 1.2em; display: inline-block; } .legend svg { width: .8em; min-width: 0; height: .8em; display: inline; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15em .8em .15em 0;
  text-align: left; vertical-align: top; } td.n, th.n { text-align: right; }
.verdict { font-weight: 600; } .scroll { overflow-x: auto; }
h1, h2, code, td { overflow-wrap: anywhere; } .scroll td { overflow-wrap: normal; }
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string number(double value, const char* format = "%.1f") {
  char text[64];
  snprintf(text, sizeof text, format, value);
  return text;
}

const char* class_of(const RegionEvent& event) {
  if (event.failed()) return "failed";
  if (event.is("Alloc LP")) return "lp";
  if (event.is("Alloc THP") || event.is("Collapse")) return "thp";
  if (event.is("Free")) return "free";
  return event.is("Purge") || event.is("Flush") ? "purge" : "sp";
}

// Of one drawing: seconds to the right, something from 0 to `top` upwards.
class Axes {
 public:
  Axes(double seconds, double top, double height) : seconds_(seconds), top_(top), height_(height) {}
  double x(double at) const { return kLeft + (kWidth - kLeft - kRight) * (seconds_ > 0 ? at / seconds_ : 0); }
  double y(double value) const { return height_ - kBottom - (height_ - kBottom - kTop) * value / top_; }
  double floor() const { return height_ - kBottom; }

  void begin(const std::string& title, std::ostream& out) const {
    out << "<div class=\"scroll\"><svg viewBox=\"0 0 " << kWidth << " " << height_
        << "\" role=\"img\"><title>" << title << "</title>\n";
    for (int i = 0; i <= 8; ++i) {
      const double at = seconds_ * i / 8;
      out << "<line class=\"grid\" x1=\"" << number(x(at)) << "\" x2=\"" << number(x(at)) << "\" y1=\""
          << kTop << "\" y2=\"" << floor() << "\"/><text x=\"" << number(x(at)) << "\" y=\"" << floor() + 16
          << "\" text-anchor=\"middle\">" << number(at, seconds_ < 10 ? "%.2f s" : "%.0f s") << "</text>\n";
    }
  }
  void level(double value, const std::string& label, std::ostream& out) const {
    out << "<line class=\"grid\" x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\""
        << number(y(value)) << "\" y2=\"" << number(y(value)) << "\"/><text x=\"" << kLeft - 6 << "\" y=\""
        << number(y(value) + 4) << "\" text-anchor=\"end\">" << label << "</text>\n";
  }

 private:
  double seconds_, top_, height_;
};

// A round number of at least `value`.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(std::max(value, 1.0))));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (step * power >= value) return step * power;
  }
  return 10 * power;
}

// Several events on one pixel: the highest of them stands for all.
void draw_mapped(const RegionLog& log, const Axes& axes, std::ostream& out) {
  out << "<path class=\"area\" d=\"M" << number(axes.x(0)) << " " << number(axes.floor());
  double last_x = axes.x(0);
  uint64_t highest = 0, last = 0;
  for (const RegionEvent& event : log.events) {
    const double x = axes.x(event.at);
    if (x - last_x > 0.5) {
      out << " V" << number(axes.y(static_cast<double>(highest))) << " V"
          << number(axes.y(static_cast<double>(last))) << " H" << number(x);
      last_x = x;
      highest = 0;
    }
    highest = std::max(highest, event.total_mib);
    last = event.total_mib;
  }
  out << " V" << number(axes.y(static_cast<double>(highest))) << " V"
      << number(axes.y(static_cast<double>(last))) << " H" << number(axes.x(end_of(log))) << " V"
      << number(axes.floor()) << " Z\"/>\n";
}

void draw_curve(const RegionLog& log, const Axes& axes, const char* name, double MemoryPoint::*value,
                std::ostream& out) {
  if (log.memory.empty()) return;
  out << "<path class=\"" << name << "\" d=\"";
  for (const MemoryPoint& point : log.memory) {
    out << (&point == &log.memory.front() ? "M" : "L") << number(axes.x(point.at)) << " "
        << number(axes.y(point.*value));
  }
  out << "\"/>\n";
}

void write_legend(std::initializer_list<std::pair<const char*, std::string>> entries, std::ostream& out) {
  out << "<p class=\"legend\">";
  for (const auto& [name, text] : entries) {
    out << "<span><svg viewBox=\"0 0 8 8\"><circle class=\"" << name
        << "\" cx=\"4\" cy=\"4\" r=\"4\"/></svg> " << escaped(text) << "</span>";
  }
  out << "</p>\n";
}

void draw_memory(const RegionLog& log, std::ostream& out) {
  uint64_t mapped = 1;
  for (const RegionEvent& event : log.events) mapped = std::max(mapped, event.total_mib);
  double live = 0, resident = 0;
  for (const MemoryPoint& point : log.memory) {
    live = std::max(live, point.live_mib);
    resident = std::max(resident, point.resident_mib);
  }
  const double top = round_up(std::max({static_cast<double>(mapped), live, resident}));
  const Axes axes(end_of(log), top, 260);
  axes.begin("MiB over time", out);
  for (int i = 0; i <= 4; ++i) axes.level(top * i / 4, number(top * i / 4, "%g MiB"), out);
  draw_mapped(log, axes, out);
  draw_curve(log, axes, "resident", &MemoryPoint::resident_mib, out);
  draw_curve(log, axes, "live", &MemoryPoint::live_mib, out);
  out << "</svg></div>\n";
  const std::string most_mapped = "mapped: address space (" + std::to_string(mapped) + " MiB at most)";
  if (log.memory.empty()) {
    write_legend({{"mapped", most_mapped}}, out);
    out << "<p>This log has no figures of live and resident memory: it is of an earlier version, the program "
           "ended "
           "within a moment, or <code>observe</code> was off.</p>\n";
    return;
  }
  write_legend({{"mapped", most_mapped},
                {"resident-dot", "resident: the whole process (" + number(resident) + " MiB at most)"},
                {"live-dot", "live: blocks that the program has (" + number(live) + " MiB at most)"}},
               out);
}

void draw_durations(const RegionLog& log, std::ostream& out) {
  // 0.01 … 10,000 ms, each power of ten as high as another.
  constexpr int kLow = -2, kHigh = 4;
  const Axes axes(end_of(log), kHigh - kLow, 260);
  axes.begin("Duration of each call", out);
  for (int power = kLow; power <= kHigh; ++power) {
    axes.level(power - kLow, number(std::pow(10, power), "%g ms"), out);
  }
  const size_t each = log.events.size() / kMostMarks + 1;
  for (size_t i = 0; i < log.events.size(); ++i) {
    const RegionEvent& event = log.events[i];
    // All that is rare is drawn, and a part of the rest.
    if (i % each != 0 && !event.failed() && event.took < 1) continue;
    const double power = std::clamp<double>(std::log10(std::max(event.took, 0.01)), kLow, kHigh);
    out << "<circle class=\"" << class_of(event) << "\" cx=\"" << number(axes.x(event.at)) << "\" cy=\""
        << number(axes.y(power - kLow)) << "\" r=\"3\"><title>" << escaped(event.what) << ", " << event.kib
        << " KiB, " << number(event.took, "%.2f") << " ms, at " << number(event.at, "%.3f") << " s "
        << escaped(event.reason) << "</title></circle>\n";
  }
  out << "</svg></div>\n";
  write_legend({{"lp", "large pages (LP)"},
                {"thp", "transparent huge pages"},
                {"sp", "small pages (SP)"},
                {"free", "free"},
                {"purge", "purge, flush"},
                {"failed", "refused, fallback"}},
               out);
}

void write_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, std::ostream& out) {
  out << "<table>";
  for (const auto& [name, value] : pairs) {
    out << "<tr><th>" << escaped(name) << "</th><td>" << escaped(value) << "</td></tr>\n";
  }
  out << "</table>\n";
}

void write_events(const RegionLog& log, std::ostream& out) {
  out << "<details><summary>Events (" << log.events.size()
      << ")</summary><div class=\"scroll\"><table><tr><th "
         "class=\"n\">s</th><th class=\"n\">ms</th><th class=\"n\">KiB</th><th>address</th><th>what</th><th "
         "class=\"n\">mapped MiB</th><th></th></tr>\n";
  for (size_t i = 0; i < std::min(log.events.size(), kMostRows); ++i) {
    const RegionEvent& event = log.events[i];
    char address[32];
    snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(event.address));
    out << "<tr><td class=\"n\">" << number(event.at, "%.3f") << "</td><td class=\"n\">"
        << number(event.took, "%.2f") << "</td><td class=\"n\">" << event.kib << "</td><td>" << address
        << "</td><td>" << escaped(event.what) << "</td><td class=\"n\">" << event.total_mib << "</td><td>"
        << escaped(event.reason) << "</td></tr>\n";
  }
  out << "</table></div>";
  if (log.events.size() > kMostRows)
    out << "<p>The first " << kMostRows << " are shown; the log has all.</p>";
  out << "</details>\n";
}

// `last`: no other program follows in the same file.
void write_program(const RegionLog& log, bool last, std::ostream& out) {
  out << "<h2>" << escaped(log.fact("program")) << ", process " << escaped(log.fact("process"))
      << ", Hummock " << escaped(log.version) << "</h2>\n<p class=\"verdict\">" << escaped(verdict(log))
      << "</p>\n";
  if (!log.events.empty() && end_of(log) >= kMoment) {
    out << "<h3>Memory</h3>\n";
    draw_memory(log, out);
    out << "<h3>Duration of each call</h3>\n";
    draw_durations(log, out);
    write_events(log, out);
  }
  if (!last && !log.ended) {
    out << "<p>It executed the next program.</p>\n";
  } else {
    out << "<h3>"
        << (log.ended
                ? "At the end"
                : "No summary: the program still runs, made way for another (exec), crashed, or was killed")
        << "</h3>\n";
  }
  write_pairs(log.summary, out);
  out << "<h3>Machine and options</h3>\n";
  write_pairs(log.facts, out);
  out << "<p>";
  for (const std::string& option : log.options) out << "<code>" << escaped(option) << "</code> ";
  out << "</p>\n";
}

}  // namespace

void write_page(const std::vector<RegionLog>& logs, const std::string& name, std::ostream& out) {
  out << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width\"><title>Hummock region log "
      << escaped(name) << "</title><style>" << kStyle << "</style></head><body>\n<h1>Region log "
      << escaped(name) << "</h1>\n";
  for (const RegionLog& log : logs) write_program(log, &log == &logs.back(), out);
  out << "</body></html>\n";
}

}  // namespace hummock::tool
