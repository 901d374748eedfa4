// Durations of single operations: a histogram of fixed size, exact to 1 part in 32.
#pragma once
#include <stddef.h>
#include <stdint.h>

class Json;

class Latency {
 public:
  void add(uint64_t nanoseconds) {
    ++counts_[index_of(nanoseconds)];
    ++count_;
    sum_ += nanoseconds;
    if (nanoseconds > max_) max_ = nanoseconds;
  }
  void add_ticks(uint64_t span);
  void merge(const Latency& other);

  uint64_t count() const { return count_; }
  // The duration that `part` (0…1) of all do not exceed.
  uint64_t percentile(double part) const;
  // {"unit":"ns","p50":…,"p90":…,"p99":…,"p999":…,"max":…,"mean":…}
  void write(Json& json) const;

 private:
  static constexpr size_t kSteps = 32;
  static constexpr size_t kBuckets = 40 * kSteps;

  static size_t index_of(uint64_t value);
  static uint64_t value_of(size_t index);

  uint32_t counts_[kBuckets];
  uint64_t count_;
  uint64_t sum_;
  uint64_t max_;
};
