#include "bench/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hummock::tool {
namespace {

constexpr int kBar = 24;
constexpr std::chrono::seconds kPlainEvery(10);

std::size_t width() {
  winsize size = {};
  return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 80u;
}

}  // namespace

Progress::Progress() : terminal_(isatty(2) != 0), last_(std::chrono::steady_clock::now() - kPlainEvery) {}

Progress::~Progress() {
  wipe();
}

void Progress::wipe() {
  if (shown_) fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::show(double part, double seconds_left, const std::string& what) {
  part = std::clamp(part, 0.0, 1.0);
  const std::string left = clock_text(seconds_left);
  if (!terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kPlainEvery) return;
    last_ = now;
    fputs(fmt::format("{:3.0f} %  {} left  {}\n", part * 100, left, what).c_str(), stderr);
    return;
  }
  const int full = static_cast<int>(std::lround(part * kBar));
  std::string bar;
  for (int i = 0; i < kBar; ++i) bar += i < full ? "━" : " ";
  const std::string text = fmt::format(" {:3.0f} %  {} left  {}", part * 100, left, what);
  fputs(("\r\033[K" + bar + text.substr(0, width() - kBar - 1)).c_str(), stderr);
  shown_ = true;
}

void Progress::say(const std::string& line) {
  wipe();
  fputs((line + "\n").c_str(), stderr);
}

std::string clock_text(double seconds) {
  const long whole = std::max(0L, std::lround(seconds));
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace hummock::tool
