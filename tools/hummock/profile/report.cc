#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "amounts.h"

namespace hummock::tool {
namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// How a program or a thread begins says nothing about it.
bool is_start(const Place& place) {
  for (const char* name :
       {"__libc_start_call_main", "__libc_start_main_impl", "__libc_start_main@@GLIBC_2.34", "_start",
        "start_thread", "clone3", "__clone3", "__clone"})
    if (place.function == name) return true;
  return false;
}

// What is inside parentheses and angle brackets says little in a line.
std::string shortened(const std::string& name) {
  std::string text;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool is_operator = i >= 8 && name.compare(i - 8, 8, "operator") == 0 && (c == '<' || c == '(');
    if (!is_operator && (c == '<' || c == '(')) ++depth;
    if (depth == 0) text += c;
    if (!is_operator && depth > 0 && (c == '>' || c == ')') && --depth == 0 && c == '>') text += "<>";
  }
  // Of templates the result comes first.
  const size_t blank = text.rfind(' ');
  if (blank != std::string::npos && text.find("operator") == std::string::npos) text.erase(0, blank + 1);
  return text.empty() ? name : text;
}

// Of the C++ library: how a container asks says less than who has the container.
bool is_library(const Place& place) {
  const std::string name = shortened(place.function);
  return name.rfind("std::", 0) == 0 || name.rfind("__gnu_cxx::", 0) == 0 ||
         name.rfind("operator new", 0) == 0;
}

// What a table shows of a stack: the first function that is not the library's, and those that call it.
std::vector<Place> shown_places(const Stack& stack) {
  std::vector<Place> shown;
  for (const Place& place : stack.places) {
    if (!shown.empty() && is_start(place)) break;
    if (!is_library(place)) shown.push_back(place);
  }
  return shown.empty() ? stack.places : shown;
}

std::string place_text(const Place& place) {
  std::string text = shortened(place.function);
  if (!place.file.empty()) text += " (" + file_name(place.file) + ":" + std::to_string(place.line) + ")";
  return text;
}

std::string cut(const std::string& text, size_t columns) {
  return text.size() <= columns ? text : text.substr(0, columns > 3 ? columns - 3 : 0) + "...";
}

// The first places that are not the allocator's own.
std::vector<Place> without_allocator(const std::vector<Place>& all) {
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Place& place) { return !place.of_allocator; });
  return first == all.end() ? all : std::vector<Place>(first, all.end());
}

std::string key_of(const Stack& stack) {
  std::string key = stack.process;
  for (const Place& place : stack.places)
    key += fmt::format("\n{}\t{}\t{}", place.function, place.file, place.line);
  return key;
}

void add_to(Stack* sum, const Stack& other) {
  sum->live += other.live;
  sum->churn += other.churn;
  sum->peak += other.peak;
  for (size_t i = 0; i < sum->freed.size(); ++i) sum->freed[i] += other.freed[i];
  sum->samples += other.samples;
  sum->live_samples += other.live_samples;
}

void merge_equal(std::vector<Stack>* stacks) {
  std::map<std::string, size_t> known;
  std::vector<Stack> merged;
  for (Stack& stack : *stacks) {
    const auto [at, fresh] = known.try_emplace(key_of(stack), merged.size());
    fresh ? merged.push_back(std::move(stack)) : add_to(&merged[at->second], stack);
  }
  *stacks = std::move(merged);
}

// Of the Poisson distribution: the usual error of so many samples is their square root.
std::string error_text(const Report& report, const Stack& stack, View view) {
  if (report.mean <= 1) return "";
  double samples = static_cast<double>(view == View::live ? stack.live_samples : stack.samples);
  if (view == View::peak && stack.churn.blocks > 0) samples *= stack.peak.blocks / stack.churn.blocks;
  if (view == View::lifetime && stack.churn.bytes > 0) samples *= stack.of(view).bytes / stack.churn.bytes;
  return samples < 0.5 ? "?" : fmt::format("{:.0f}%", 100 / std::sqrt(samples));
}

// As a table shows them: stacks that look the same there are one. `line`: of where memory was asked for.
std::vector<Stack> grouped(const std::vector<Stack>& stacks, bool line) {
  std::vector<Stack> groups;
  std::map<std::string, size_t> known;
  for (const Stack& each : stacks) {
    Stack shown = each;
    shown.places = shown_places(each);
    std::string key = line ? place_text(shown.places.front()) : "";
    for (const Place& place : shown.places) key += "\n" + place.function;
    const auto [at, fresh] = known.try_emplace(key, groups.size());
    fresh ? groups.push_back(std::move(shown)) : add_to(&groups[at->second], shown);
  }
  return groups;
}

// Lines of callers, as many as fit into two.
std::string callers_text(const std::vector<Place>& places, size_t columns) {
  std::string text;
  size_t used = 0;
  for (size_t i = 1; i < places.size(); ++i) {
    const std::string name = "< " + shortened(places[i].function) + " ";
    if (used + name.size() > 2 * columns) {
      text += "...";
      break;
    }
    text += name;
    used += name.size();
  }
  return text;
}

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  std::string lines;
  for (size_t at = 0; at < text.size();) {
    size_t length = std::min(columns, text.size() - at);
    if (at + length < text.size()) {
      const size_t blank = text.rfind(" <", at + length - 1);
      if (blank != std::string::npos && blank > at) length = blank + 1 - at;
    }
    lines += std::string(indent, ' ') + text.substr(at, length) + "\n";
    at += length;
  }
  return lines;
}

const char* title_of(View view) {
  switch (view) {
    case View::churn:
      return "asked for";
    case View::peak:
      return "live at the peak";
    case View::lifetime:
      return "freed";
    default:
      return "live";
  }
}

std::string head_of(const Report& report, View view) {
  const Amount total = report.total(view);
  std::string who = report.processes.empty() ? "nothing" : report.processes.front();
  if (const size_t more = report.processes.size() - 1; report.processes.size() > 1)
    who += fmt::format(" and {} more process{}", more, more == 1 ? "" : "es");
  std::string text = fmt::format("{}: {}", who, size_text(total.bytes));
  if (!report.titled) text += std::string(" ") + title_of(view);
  if (view != View::lifetime)
    text += fmt::format(" in {}{:.0f} block{}", report.mean == 1 ? "" : "some ", total.blocks,
                        report.mean == 1 && total.blocks == 1 ? "" : "s");
  if (report.seconds > 0 && (view == View::churn || view == View::lifetime))
    text += fmt::format(" within {:.1f} s", report.seconds);
  if (report.mean > 1) text += fmt::format(", a sample in {}", bytes_text(report.mean));
  return text + "\n";
}

std::string notes_of(const Report& report) {
  std::string text;
  if (report.samples_dropped != 0)
    text += fmt::format("there was no room for {} samples: live figures are too low; use larger --bytes\n",
                        report.samples_dropped);
  if (report.stacks_dropped != 0) text += fmt::format("{} samples have no stack\n", report.stacks_dropped);
  return text;
}

}  // namespace

Amount Stack::of(View view) const {
  if (view == View::lifetime) return {std::accumulate(freed.begin(), freed.end(), 0.0), 0};
  return view == View::churn ? churn : view == View::peak ? peak : live;
}

std::string age_text(const Ages& freed, double share) {
  constexpr const char* kEnds[] = {"0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s"};
  static_assert(std::size(kEnds) + 1 == HUMMOCK_PROFILE_AGES);
  double left = share * std::accumulate(freed.begin(), freed.end(), 0.0);
  for (size_t i = 0; i < std::size(kEnds); ++i) {
    left -= freed[i];
    if (left <= 0) return fmt::format("< {}", kEnds[i]);
  }
  return fmt::format("> {}", kEnds[std::size(kEnds) - 1]);
}

Amount Report::total(View view) const {
  return std::accumulate(stacks.begin(), stacks.end(), Amount(), [view](Amount sum, const Stack& stack) {
    sum += stack.of(view);
    return sum;
  });
}

void add_profile(Report* report, const RawProfile& profile, const std::string& root,
                 const std::string& process) {
  Names names(profile, root);
  for (const RawStack& raw : profile.stacks) {
    if (raw.churn.bytes <= 0 && raw.live.bytes <= 0 && raw.peak.bytes <= 0) continue;
    Stack stack;
    std::vector<Place> all;
    for (const uint64_t address : raw.frames) {
      const std::vector<Place>& places = names.find(address);
      all.insert(all.end(), places.begin(), places.end());
    }
    if (all.empty()) all.push_back({"(no stack)", "", 0, false});
    stack.places = without_allocator(all);
    stack.live = raw.live;
    stack.churn = raw.churn;
    stack.peak = raw.peak;
    stack.freed = raw.freed;
    stack.samples = raw.samples;
    stack.live_samples = raw.live_samples;
    stack.process = process;
    report->stacks.push_back(std::move(stack));
  }
  merge_equal(&report->stacks);
  report->processes.push_back(process);
  report->mean = std::max(report->mean, profile.mean);
  report->samples_dropped += profile.samples_dropped;
  report->stacks_dropped += profile.stacks_dropped;
}

std::string table(const Report& report, View view, unsigned top, unsigned columns) {
  const std::vector<Stack> groups = grouped(report.stacks, true);
  std::vector<const Stack*> sorted;
  for (const Stack& stack : groups)
    if (stack.of(view).bytes > 0) sorted.push_back(&stack);
  std::sort(sorted.begin(), sorted.end(),
            [view](const Stack* a, const Stack* b) { return a->of(view).bytes > b->of(view).bytes; });
  std::string text = head_of(report, view);
  const double total = report.total(view).bytes;
  const bool lives = view == View::lifetime;
  const size_t indent = lives ? 46 : 34;
  const size_t room = columns > indent + 30 ? columns - indent : 30;
  text += lives ? "     BYTES  SHARE   HALF IN  9/10 IN       +/-  WHERE\n"
                : "     BYTES  SHARE    BLOCKS    +/-  WHERE\n";
  const size_t shown = top == 0 ? sorted.size() : std::min<size_t>(top, sorted.size());
  for (size_t i = 0; i < shown; ++i) {
    const Stack& stack = *sorted[i];
    const Amount amount = stack.of(view);
    text += fmt::format("{:>10} {:5.1f}% ", bytes_text(amount.bytes), 100 * amount.bytes / total);
    text += lives ? fmt::format("{:>9} {:>8} {:>9}", age_text(stack.freed, 0.5), age_text(stack.freed, 0.9),
                                error_text(report, stack, view))
                  : fmt::format("{:9.0f} {:>6}", amount.blocks, error_text(report, stack, view));
    text += fmt::format("  {}\n", cut(place_text(stack.places.front()), room));
    text += wrapped(callers_text(stack.places, room), indent + 2, room - 2);
  }
  if (sorted.size() > shown)
    text += fmt::format("{} more stack{}: --top 0 prints all\n", sorted.size() - shown,
                        sorted.size() - shown == 1 ? "" : "s");
  return text + notes_of(report);
}

std::string difference(const Report& before, const Report& after, View view, unsigned top, unsigned columns) {
  std::vector<Stack> both;
  for (const Report* report : {&before, &after}) {
    for (Stack stack : report->stacks) {
      const double sign = report == &after ? 1 : -1;
      const Amount amount = stack.of(view);
      stack.live = {sign * amount.bytes, sign * amount.blocks};
      both.push_back(std::move(stack));
    }
  }
  // Lines change from one version of a program to the next.
  const std::vector<Stack> changes = grouped(both, false);
  std::vector<const Stack*> sorted;
  for (const Stack& change : changes)
    if (std::fabs(change.live.bytes) >= 0.5) sorted.push_back(&change);
  std::sort(sorted.begin(), sorted.end(), [](const Stack* a, const Stack* b) {
    return std::fabs(a->live.bytes) > std::fabs(b->live.bytes);
  });
  const double from = before.total(view).bytes, to = after.total(view).bytes;
  std::string text = fmt::format("{}: {}, then {}: {}{}\n", title_of(view), bytes_text(from), bytes_text(to),
                                 to > from ? "+" : "", bytes_text(to - from));
  text += "    CHANGE    BLOCKS  WHERE\n";
  constexpr size_t kIndent = 22;
  const size_t room = columns > kIndent + 30 ? columns - kIndent : 30;
  for (size_t i = 0; i < sorted.size() && (top == 0 || i < top); ++i) {
    const Amount& amount = sorted[i]->live;
    const std::vector<Place>& places = sorted[i]->places;
    text += fmt::format("{:>10} {:+9.0f}  {}\n", (amount.bytes > 0 ? "+" : "") + bytes_text(amount.bytes),
                        amount.blocks, cut(shortened(places.front().function), room));
    text += wrapped(callers_text(places, room), kIndent + 2, room - 2);
  }
  return text;
}

}  // namespace hummock::tool
