#include "figures.h"

#include <algorithm>

namespace {

double nanoseconds_of(const Record& record, double ticks_taken) {
  const double own = ticks_taken - record.overhead;
  return own < 0 ? 0 : own * tick_scale.nanoseconds_per_tick;
}

struct Calls {
  const uint32_t* steps;
  size_t count;
};

// The steps of the row; books are reused from row to row.
Calls calls_of(const Script& script, uint32_t row, Call call) {
  static uint32_t* steps = arena_array<uint32_t>(script.count());
  size_t count = 0;
  for (size_t i = 0; i < script.count(); ++i) {
    const Step& step = script.steps()[i];
    const bool wanted = row == kAllRows ? step.row != kUntimed : step.row == row;
    if (wanted && (step.size != 0) == (call == Call::kMalloc)) steps[count++] = static_cast<uint32_t>(i);
  }
  return {steps, count};
}

// The value that a part of all does not exceed: of n sorted values the one of rank ceil(part · n).
double quantile(const float* sorted, size_t count, double part) {
  const double exact = part * static_cast<double>(count);
  auto rank = static_cast<size_t>(exact);
  rank += static_cast<double>(rank) < exact;
  return static_cast<double>(sorted[rank == 0 ? 0 : rank - 1]);
}

void write_quantiles(Json& json, float* values, size_t count) {
  std::sort(values, values + count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  const auto rounded = [](double value) {
    return static_cast<double>(static_cast<uint64_t>(value * 10 + 0.5)) / 10;
  };
  json.open('{');
  json.key("p50").number(rounded(quantile(values, count, 0.5)));
  json.key("p99").number(rounded(quantile(values, count, 0.99)));
  json.key("p999").number(rounded(quantile(values, count, 0.999)));
  json.key("max").number(rounded(static_cast<double>(values[count - 1])));
  json.key("mean").number(rounded(sum / static_cast<double>(count)));
  json.close('}');
}

uint32_t least_of(const Record& record, size_t step) {
  uint32_t least = record.at(step, 0);
  for (unsigned i = 1; i < record.replays(); ++i) least = std::min(least, record.at(step, i));
  return least;
}

// The mean of what is at most two steps of the counter and a tenth above the least: without the replays in
// which something else came between.
float typical_of(const Record& record, size_t step, uint32_t counter) {
  const uint32_t least = least_of(record, step);
  const uint32_t most = least + least / 10 + 2 * counter;
  uint64_t sum = 0, counted = 0;
  for (unsigned i = 0; i < record.replays(); ++i) {
    const uint32_t span = record.at(step, i);
    if (span > most) continue;
    sum += span;
    ++counted;
  }
  return static_cast<float>(nanoseconds_of(record, static_cast<double>(sum) / static_cast<double>(counted)));
}

uint32_t shortest_step() {
  uint32_t shortest = ~uint32_t{0};
  for (int i = 0; i < 10000; ++i) {
    const uint64_t start = ticks();
    const auto span = static_cast<uint32_t>(ticks() - start);
    if (span != 0 && span < shortest) shortest = span;
  }
  return shortest;
}

uint32_t counter_ticks() {
  static const uint32_t step = shortest_step();
  return step;
}

}  // namespace

double counter_step() {
  return static_cast<double>(counter_ticks()) * tick_scale.nanoseconds_per_tick;
}

void write_figures(Json& json, const Script& script, const Record& record, uint32_t row, Call call) {
  const Calls calls = calls_of(script, row, call);
  if (calls.count == 0) {
    json.null();
    return;
  }
  static float* values = arena_array<float>(script.count() * record.replays());
  json.open('{');
  json.key("calls").number(static_cast<uint64_t>(calls.count));
  size_t count = 0;
  for (size_t i = 0; i < calls.count; ++i)
    for (unsigned replay = 0; replay < record.replays(); ++replay)
      values[count++] = static_cast<float>(nanoseconds_of(record, record.at(calls.steps[i], replay)));
  json.key("seen");
  write_quantiles(json, values, count);
  for (size_t i = 0; i < calls.count; ++i) values[i] = typical_of(record, calls.steps[i], counter_ticks());
  json.key("typical");
  write_quantiles(json, values, calls.count);
  for (size_t i = 0; i < calls.count; ++i)
    values[i] = static_cast<float>(nanoseconds_of(record, least_of(record, calls.steps[i])));
  json.key("least");
  write_quantiles(json, values, calls.count);
  json.close('}');
}
