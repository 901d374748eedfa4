#include "latency.h"

#include "clock.h"
#include "json.h"

TickScale tick_scale = {1.0, 0};

void ticks_calibrate() {
  if (tick_scale.overhead != 0) return;
  const double empty = empty_span();
  const uint64_t start = ticks();
  const uint64_t start_time = nanoseconds();
  while (nanoseconds() - start_time < 10000000) {
  }
  const uint64_t span = ticks() - start;
  tick_scale.nanoseconds_per_tick =
      static_cast<double>(nanoseconds() - start_time) / static_cast<double>(span == 0 ? 1 : span);
  tick_scale.overhead = empty < 1 ? 1 : static_cast<uint64_t>(empty);
}

size_t Latency::index_of(uint64_t value) {
  if (value < kSteps) return static_cast<size_t>(value);
  const unsigned shift = 63 - static_cast<unsigned>(__builtin_clzll(value)) - 5;
  const size_t index = (shift + 1) * kSteps + static_cast<size_t>((value >> shift) - kSteps);
  return index < kBuckets ? index : kBuckets - 1;
}

uint64_t Latency::value_of(size_t index) {
  if (index < kSteps) return index;
  const size_t shift = index / kSteps - 1;
  return (static_cast<uint64_t>(index % kSteps) + kSteps) << shift;
}

void Latency::add_ticks(uint64_t span) {
  add(ticks_to_nanoseconds(span));
}

void Latency::merge(const Latency& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  if (other.max_ > max_) max_ = other.max_;
}

uint64_t Latency::percentile(double part) const {
  const auto rank = static_cast<uint64_t>(part * static_cast<double>(count_));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen > rank) return value_of(i);
  }
  return max_;
}

void Latency::write(Json& json) const {
  json.open('{');
  json.key("unit").text("ns");
  json.key("p50").number(percentile(0.5));
  json.key("p90").number(percentile(0.9));
  json.key("p99").number(percentile(0.99));
  json.key("p999").number(percentile(0.999));
  json.key("max").number(max_);
  json.key("mean").number(count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_));
  json.key("count").number(count_);
  json.close('}');
}
