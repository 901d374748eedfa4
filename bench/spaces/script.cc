#include "script.h"

#include <string.h>

#include "rng.h"

Script::Script(size_t most_steps, size_t most_rows)
    : steps_(arena_array<Step>(most_steps)),
      room_(most_steps),
      rows_(arena_array<Row>(most_rows)),
      row_room_(most_rows) {}

uint32_t Script::add_row(size_t size, size_t blocks) {
  if (row_count_ == row_room_) fail(3, "a script has too many rows");
  rows_[row_count_] = {size, blocks};
  return static_cast<uint32_t>(row_count_++);
}

void Script::add(size_t slot, size_t size, uint32_t row) {
  if (count_ == room_) fail(3, "a script has too many steps");
  steps_[count_++] = {static_cast<uint32_t>(slot), static_cast<uint32_t>(size), row};
  if (slot >= slots_) slots_ = slot + 1;
}

void Script::take(size_t slot, size_t size, uint32_t row) {
  add(slot, size, row);
}

void Script::release(size_t slot, uint32_t row) {
  add(slot, 0, row);
}

void Script::end() {
  bool* live = arena_array<bool>(slots_ + 1);
  for (size_t i = 0; i < count_; ++i) live[steps_[i].slot] = steps_[i].size != 0;
  const size_t slots = slots_;
  for (size_t slot = 0; slot < slots; ++slot)
    if (live[slot]) release(slot);
}

namespace {

constexpr size_t kLeast = 16;
constexpr size_t kLargest = 4 << 20;

// Of each size so many are allocated, then all are freed.
Script make_sequential(const Effort&, size_t space_bytes) {
  constexpr size_t kMost = 1000;
  constexpr size_t kSizes = 19;
  Script script(2 * kMost * kSizes, kSizes);
  for (size_t size = kLargest; size >= kLeast; size /= 2) {
    const size_t fit = space_bytes / 2 / size;
    const size_t count = fit < kMost ? fit : kMost;
    const uint32_t row = script.add_row(size);
    for (size_t i = 0; i < count; ++i) script.take(i, size, row);
    for (size_t i = 0; i < count; ++i) script.release(i, row);
  }
  return script;
}

// Blocks of log-uniform sizes come and go while a part of the space is in use: a random one is freed until
// the next one fits the budget, then as many are allocated as fit.
class Churn {
 public:
  Churn(size_t budget, size_t largest, size_t turns, uint64_t seed)
      : script_(4 * turns + 2 * kRoom, 32), rng_(seed), budget_(budget), largest_(largest), turns_(turns) {
    script_.add_row(0);  // of all sizes: who reads adds them up
    for (size_t size = kLeast; size < largest; size *= 2) script_.add_row(size);
    live_ = arena_array<Live>(kRoom);
    for (size_t i = 0; i < kRoom; ++i) live_[i].slot = static_cast<uint32_t>(i);
  }

  Script make() {
    draw();
    fill(false);
    for (size_t turn = 0; turn < turns_; ++turn) {
      drop();
      fill(true);
    }
    script_.end();
    return script_;
  }

 private:
  static constexpr size_t kRoom = 200000;  // more are never live
  struct Live {
    uint32_t slot, size;
  };

  void draw() { next_ = rng_.log_uniform(kLeast, largest_); }

  uint32_t row_of(size_t size) const {  // the size rounded down to a power of two, the largest to one less
    const size_t most = size < largest_ ? size : largest_ - 1;
    return 1 + static_cast<uint32_t>(63 - __builtin_clzll(most / kLeast));
  }

  void fill(bool timed) {
    while (count_ < kRoom && in_use_ + next_ <= budget_) {
      live_[count_].size = static_cast<uint32_t>(next_);
      script_.take(live_[count_++].slot, next_, timed ? row_of(next_) : kUntimed);
      in_use_ += next_;
      draw();
    }
  }

  void drop() {
    const size_t victim = rng_.below(count_);
    const Live gone = live_[victim];
    live_[victim] = live_[--count_];
    live_[count_] = gone;  // its slot is the next that is free
    script_.release(gone.slot, row_of(gone.size));
    in_use_ -= gone.size;
  }

  Script script_;
  Rng rng_;
  size_t budget_, largest_, turns_;
  Live* live_;
  size_t count_ = 0;
  size_t in_use_ = 0;
  size_t next_ = 0;
};

Script make_churn(const Effort& effort, size_t space_bytes) {
  return Churn(space_bytes / 10 * 7, kLargest, effort.quick ? 20000 : 100000, effort.seed).make();
}

Script make_near_full(const Effort& effort, size_t space_bytes) {
  return Churn(space_bytes / 100 * 90, 64 << 10, effort.quick ? 20000 : 100000, effort.seed).make();
}

// Every other one of many small blocks is freed, and allocated again.
Script make_alternating(const Effort& effort, size_t) {
  constexpr size_t kSize = 64;
  const size_t blocks = effort.quick ? 50000 : 300000;
  Script script(6 * blocks, 1);
  const uint32_t row = script.add_row(kSize, blocks);
  for (size_t i = 0; i < blocks; ++i) script.take(i, kSize);
  for (size_t i = 0; i < blocks; i += 2) script.release(i, row);
  for (size_t i = 0; i < blocks; i += 2) script.take(i, kSize, row);
  for (size_t i = 1; i < blocks; i += 2) script.release(i, row);
  script.end();
  return script;
}

// Every other one of N small blocks is freed; then one larger block is wanted, and freed.
Script make_holes(const Effort&, size_t) {
  constexpr size_t kCounts[] = {1000, 3000, 10000, 30000, 100000, 300000};
  constexpr size_t kSize = 64, kWanted = 4096;
  size_t steps = 0;
  for (const size_t count : kCounts) steps += 2 * count + 2;
  Script script(steps, sizeof kCounts / sizeof *kCounts);
  for (const size_t count : kCounts) {
    const uint32_t row = script.add_row(kWanted, count);
    for (size_t i = 0; i < count; ++i) script.take(i, kSize);
    for (size_t i = 0; i < count; i += 2) script.release(i);
    script.take(count, kWanted, row);
    script.release(count, row);
    for (size_t i = 1; i < count; i += 2) script.release(i);
  }
  return script;
}

constexpr Scenario kScenarios[] = {
    {"sequential", 512 << 20, 15, make_sequential},
    {"churn", 512 << 20, 7, make_churn},
    {"near-full", 64 << 20, 7, make_near_full},
    {"alternating", 64 << 20, 7, make_alternating},
    {"holes", 64 << 20, 7, make_holes},
};

}  // namespace

const Scenario* find_scenario(const char* name) {
  for (const Scenario& scenario : kScenarios)
    if (strcmp(scenario.name, name) == 0) return &scenario;
  return nullptr;
}

void list_scenarios(void (*visit)(const char* name)) {
  for (const Scenario& scenario : kScenarios) visit(scenario.name);
}
