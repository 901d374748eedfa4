// Looks at the process's private memory, over and over, in a thread of its own.
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "json.h"

// Resident memory that is neither shared nor a file's.
size_t private_bytes();

class Sampler {
 public:
  Sampler();
  void stop();

  size_t start() const { return start_; }
  size_t peak() const { return peak_; }
  double cpu_seconds() const { return cpu_seconds_; }  // what the looks took
  void write(Json& json) const;                        // as "series"

 private:
  static constexpr size_t kPoints = 200;
  struct Point {
    double time;
    size_t resident;
  };
  void look();
  void run();

  std::atomic<bool> stopped_{false};
  pthread_t thread_;
  uint64_t begun_;
  size_t start_, peak_;
  double cpu_seconds_ = 0;
  double interval_ = 0.002, next_ = 0;  // of the points that are kept
  Point points_[kPoints];
  size_t count_ = 0;
};
