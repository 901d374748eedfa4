// A script: the same mallocs and frees for every contestant, in the same order, as often as it is replayed.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

// A malloc of `size` bytes into a slot, or with size 0 the free of what stands there. Its time goes to a row
// of the table, or nowhere.
struct Step {
  uint32_t slot;
  uint32_t size;
  uint32_t row;
};
inline constexpr uint32_t kUntimed = ~uint32_t{0};

struct Row {
  size_t size;    // of its blocks; 0: of all sizes together
  size_t blocks;  // that the state has been made of; 0: does not matter
};

class Script {
 public:
  Script(size_t most_steps, size_t most_rows);

  uint32_t add_row(size_t size, size_t blocks = 0);
  void take(size_t slot, size_t size, uint32_t row = kUntimed);
  void release(size_t slot, uint32_t row = kUntimed);
  // Everything still live is freed: each replay begins with nothing.
  void end();

  const Step* steps() const { return steps_; }
  size_t count() const { return count_; }
  const Row* rows() const { return rows_; }
  size_t row_count() const { return row_count_; }
  size_t slots() const { return slots_; }

 private:
  void add(size_t slot, size_t size, uint32_t row);

  Step* steps_;
  size_t room_;
  size_t count_ = 0;
  Row* rows_;
  size_t row_room_;
  size_t row_count_ = 0;
  size_t slots_ = 0;
};

struct Effort {
  bool quick;
  uint64_t seed;
};

struct Scenario {
  const char* name;
  size_t space_bytes;  // of a space that it is run in
  unsigned replays;    // quick ones; else twice as many
  Script (*make)(const Effort& effort, size_t space_bytes);
};

// Null: there is none of that name.
const Scenario* find_scenario(const char* name);
void list_scenarios(void (*visit)(const char* name));
