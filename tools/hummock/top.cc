#include "top.h"

#include <fmt/format.h>
#define NCURSES_NOMACROS  // move, clear and the like stay names
#include <ncurses.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>

#include "amounts.h"
#include "figures.h"
#include "figures_text.h"
#include "processes.h"

namespace hummock::tool {
namespace {

constexpr unsigned kWaitMs = 100;
constexpr int kRedraw = 12;       // Ctrl-L, as in other programs
constexpr size_t kHistory = 100;  // looks that a bar shows at most

enum class View { classes, threads, heaps };

struct Line {
  uint64_t key = 0;  // by which lines are sorted, the largest first
  std::string text;
};

// A bar of what a process had in memory, a character a look, the latest last.
std::string bar(const std::deque<uint64_t>& history) {
  constexpr int kBefore = 72;  // the columns before it
  const size_t width = std::min(history.size(), static_cast<size_t>(std::clamp(COLS - kBefore, 0, 100)));
  const uint64_t most = std::max<uint64_t>(1, *std::max_element(history.begin(), history.end()));
  std::string text;
  for (size_t i = history.size() - width; i < history.size(); ++i) text += "_.-=*#"[history[i] * 5 / most];
  return text;
}

class Screen {
 public:
  Screen(std::string which, double every) : which_(std::move(which)), every_(every) {}

  int run();

 private:
  bool look(std::string* why);
  void remember();
  void order();
  void draw();
  void draw_lines(std::vector<Line> lines, int row);
  int draw_totals(const Snapshot& snapshot);
  bool act(int key);
  const Snapshot* chosen() const;
  std::vector<Line> process_lines() const;

  std::string which_;
  double every_;
  View view_ = View::classes;
  unsigned sort_ = 0;        // of the list
  unsigned class_sort_ = 0;  // of an opened process's classes
  size_t selected_ = 0;
  int opened_ = 0;  // the process whose tables are shown; 0: the list
  std::vector<Snapshot> all_;
  size_t silent_ = 0;  // processes that have no figures yet
  std::map<int, std::deque<uint64_t>> history_;
};

constexpr const char* kSorts[] = {"resident", "live", "fragmented", "dirty"};
constexpr const char* kClassSorts[] = {"held", "live bytes", "fragment", "block size"};
static_assert(std::size(kSorts) == std::size(kClassSorts));

std::string name_of(const Snapshot& s) {
  return ascii(s.program).substr(0, 15);
}

uint64_t fragmented(const hummock_figures_t& f) {
  return f.committed > f.live ? f.committed - f.live : 0;
}

uint64_t key_of(const Snapshot& s, unsigned sort) {
  const hummock_figures_t& f = s.page.figures;
  const uint64_t keys[] = {s.resident, f.live, fragmented(f), f.dirty};
  return keys[sort];
}

std::string limit_text(uint64_t bytes) {
  return bytes == 0 ? "none" : bytes_text(bytes);
}

Line line_of(const hummock_page_class_t& row, unsigned sort) {
  const uint64_t live = used_bytes(row), held = held_bytes(row);
  const uint64_t keys[] = {held, live, held > live ? held - live : 0, row.block_size};
  return {keys[sort],
          fmt::format("{:>9} {:>9} {:>11} {:>9} {:>9} {:>9}", row.block_size, row.slabs, row.live_blocks,
                      bytes_text(live), bytes_text(held), bytes_text(held > live ? held - live : 0))};
}

Line line_of(const hummock_page_thread_t& row, unsigned) {
  return {row.cached,
          fmt::format("{:>9} {:>9} {:>9}", row.id, bytes_text(row.cached), bytes_text(row.earned))};
}

Line line_of(const hummock_page_heap_t& row, unsigned) {
  return {row.bytes, fmt::format("{:>9} {:>9} {:>9} {:>9} {}", row.number, bytes_text(row.live),
                                 bytes_text(row.bytes), row.slabs, row.name)};
}

template <class Row>
std::vector<Line> lines_of(const Row* rows, uint32_t count, unsigned sort = 0) {
  std::vector<Line> lines;
  for_rows(rows, count, [&](const Row& row) { lines.push_back(line_of(row, sort)); });
  return lines;
}

// What does not fit is cut, so that no line wraps.
void put(int row, const std::string& text, int attributes = 0) {
  if (row >= LINES) return;
  attron(attributes);
  mvaddnstr(row, 0, text.c_str(), COLS);
  attroff(attributes);
}

bool Screen::look(std::string* why) {
  std::vector<Silent> silent;
  const std::vector<int> pids = which_.empty() ? all_processes() : find_processes(which_);
  all_ = read_all(pids, kWaitMs, &silent);
  silent_ = silent.size();
  remember();
  if ((which_.empty() && !pids.empty()) || !all_.empty()) return true;
  if (which_.empty()) {
    *why = "no process can be seen: is /proc mounted?";
    return false;
  }
  *why = "there is no such process";
  if (!pids.empty() && PageFile::open(pids.front(), why)) *why = "it has made no call that answers yet";
  return false;
}

void Screen::remember() {
  const auto has_ended = [this](const auto& each) {
    return std::none_of(all_.begin(), all_.end(), [&](const Snapshot& s) { return s.pid == each.first; });
  };
  for (auto each = history_.begin(); each != history_.end();)
    each = has_ended(*each) ? history_.erase(each) : std::next(each);
  for (const Snapshot& s : all_) {
    std::deque<uint64_t>& history = history_[s.pid];
    history.push_back(s.resident);
    if (history.size() > kHistory) history.pop_front();
  }
  order();
}

void Screen::order() {
  std::stable_sort(all_.begin(), all_.end(), [this](const Snapshot& a, const Snapshot& b) {
    return key_of(a, sort_) > key_of(b, sort_);
  });
}

const Snapshot* Screen::chosen() const {
  for (const Snapshot& s : all_) {
    if (s.pid == opened_) return &s;
  }
  return nullptr;
}

std::vector<Line> Screen::process_lines() const {
  std::vector<Line> lines;
  for (const Snapshot& s : all_) {
    const hummock_figures_t& f = s.page.figures;
    lines.push_back(
        {key_of(s, sort_), fmt::format("{:>8} {:<15} {:>8} {:>8} {:>8} {:>8} {:>5}s {}", s.pid, name_of(s),
                                       bytes_text(s.resident), bytes_text(f.live), bytes_text(fragmented(f)),
                                       bytes_text(f.dirty), s.age_ms / 1000, bar(history_.at(s.pid)))});
  }
  return lines;
}

void Screen::draw_lines(std::vector<Line> lines, int row) {
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.key > b.key; });
  const size_t room = static_cast<size_t>(std::max(1, LINES - 1 - row));
  const size_t first = opened_ == 0 && selected_ >= room ? selected_ - room + 1 : 0;
  for (size_t i = first; i < lines.size() && i < first + room; ++i) {
    put(row++, lines[i].text, opened_ == 0 && i == selected_ ? A_REVERSE : 0);
  }
}

int Screen::draw_totals(const Snapshot& s) {
  const hummock_figures_t& f = s.page.figures;
  put(0,
      fmt::format("{} ({}), figures of {:.1f} s ago", name_of(s), s.pid,
                  static_cast<double>(s.age_ms) / 1000),
      A_BOLD);
  put(1,
      fmt::format("resident {}  live {}  fragmented {}  dirty {}  thread caches {}", bytes_text(s.resident),
                  bytes_text(f.live), bytes_text(fragmented(f)), bytes_text(f.dirty), bytes_text(f.cached)));
  put(2, fmt::format("peak {}  purged {}  large {} in {}  limits: soft {}, hard {}", bytes_text(f.peak),
                     bytes_text(f.purged), bytes_text(f.large_bytes), f.large_blocks,
                     limit_text(f.limit_soft), limit_text(f.limit_hard)));
  return 4;
}

void Screen::draw() {
  erase();
  const Snapshot* one = chosen();
  if (one == nullptr) {
    opened_ = 0;
    const std::string silent = silent_ == 0 ? "" : fmt::format(", {} have not answered", silent_);
    put(0,
        fmt::format("hummock top: {} process{}, by {}{}", all_.size(), all_.size() == 1 ? "" : "es",
                    kSorts[sort_], silent),
        A_BOLD);
    put(2,
        fmt::format("{:>8} {:<15} {:>8} {:>8} {:>8} {:>8} {:>6} {}", "PID", "PROGRAM", "RESIDENT", "LIVE",
                    "FRAGMENT", "DIRTY", "AGE", "LATELY"),
        A_UNDERLINE);
    selected_ = all_.empty() ? 0 : std::min(selected_, all_.size() - 1);
    draw_lines(process_lines(), 3);
    put(LINES - 1, "q quit  up/down choose  enter open  s sort", A_REVERSE);
    refresh();
    return;
  }
  const int row = draw_totals(*one);
  const hummock_figures_t& f = one->page.figures;
  if (view_ == View::classes) {
    put(row - 1, "    BLOCK     SLABS        LIVE     BYTES      HELD  FRAGMENT", A_UNDERLINE);
    draw_lines(lines_of(f.classes, f.class_count, class_sort_), row);
  } else if (view_ == View::threads) {
    put(row - 1, "   THREAD     CACHE    EARNED", A_UNDERLINE);
    draw_lines(lines_of(f.thread, f.thread_count), row);
  } else {
    put(row - 1, "     HEAP      LIVE      HELD     SLABS NAME", A_UNDERLINE);
    draw_lines(lines_of(f.heap, f.heap_count), row);
  }
  put(LINES - 1,
      fmt::format("q quit  backspace list  c classes  t threads  h heaps  s sort: {}",
                  view_ == View::classes ? kClassSorts[class_sort_] : "held"),
      A_REVERSE);
  refresh();
}

// False: it was the end.
bool Screen::act(int key) {
  if (key == 'q') return false;
  if (key == kRedraw) clearok(stdscr, true);
  unsigned& sort = opened_ == 0 ? sort_ : class_sort_;
  if (key == 's') sort = (sort + 1) % std::size(kSorts), order();
  if (key == KEY_UP && selected_ != 0) --selected_;
  if (key == KEY_DOWN) ++selected_;  // draw() bounds it
  if ((key == '\n' || key == KEY_ENTER) && selected_ < all_.size()) opened_ = all_[selected_].pid;
  if (key == KEY_BACKSPACE || key == 127 || key == 27) opened_ = 0;
  if (key == 'c') view_ = View::classes;
  if (key == 't') view_ = View::threads;
  if (key == 'h') view_ = View::heaps;
  return true;
}

int Screen::run() {
  std::string why;
  if (!look(&why)) {
    fprintf(stderr, "hummock top: %s%s%s\n", which_.c_str(), which_.empty() ? "" : ": ", why.c_str());
    return 1;
  }
  if (all_.size() == 1 && !which_.empty()) opened_ = all_.front().pid;
  if (initscr() == nullptr) return 1;
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, true);
  using Clock = std::chrono::steady_clock;
  const auto pause = std::chrono::milliseconds(static_cast<int64_t>(every_ * 1000));
  for (bool goes_on = true; goes_on;) {
    draw();
    const auto next = Clock::now() + pause;
    for (auto left = pause; goes_on && left.count() > 0;
         left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now())) {
      timeout(static_cast<int>(left.count()));
      const int key = getch();
      if (key == ERR) break;
      goes_on = act(key);
      draw();
    }
    if (goes_on && !look(&why)) break;
  }
  endwin();
  if (!why.empty() && all_.empty()) fprintf(stderr, "hummock top: %s: %s\n", which_.c_str(), why.c_str());
  return 0;
}

}  // namespace

int top(const std::string& which, double every) {
  if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) {
    fprintf(stderr, "hummock top: this is not a terminal; use hummock ps or hummock stats\n");
    return 1;
  }
  return Screen(which, every).run();
}

}  // namespace hummock::tool
