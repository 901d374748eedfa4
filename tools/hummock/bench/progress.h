// How far the bench is: a bar with the time left on a terminal, else a plain line now and then.
#pragma once

#include <chrono>
#include <string>

namespace hummock::tool {

class Progress {
 public:
  Progress();
  ~Progress();
  void show(double part, double seconds_left, const std::string& what);
  void say(const std::string& line);  // a line that stays

 private:
  void wipe();

  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

std::string clock_text(double seconds);  // "1:05"

}  // namespace hummock::tool
