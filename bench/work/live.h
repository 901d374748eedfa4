// Blocks that live at once, in slots that are shared out among the threads, and are replaced one by one.
#pragma once
#include "blocks.h"
#include "clock.h"

class Live {
 public:
  void set_up(const Run& run, size_t blocks) {
    share_ = (blocks + run.threads() - 1) / run.threads();
    slots_ = arena_array<char*>(share_ * run.threads());
  }

  char** of(const Worker& worker) const { return slots_ + worker.index * share_; }
  size_t share() const { return share_; }

  template <typename Draw>
  void fill(Worker& worker, Draw draw) const {
    for (size_t i = 0; i < share_; ++i) of(worker)[i] = make_block(worker, draw(worker));
  }

  void drop(Worker& worker) const { drop_all(worker, of(worker), share_); }

 private:
  size_t share_ = 0;
  char** slots_ = nullptr;
};

// The free and the malloc alone are timed.
inline void replace_timed(Worker& worker, char*& slot, size_t size) {
  const size_t old_size = retire(slot);
  const uint64_t start = ticks();
  free(slot);
  char* block = static_cast<char*>(malloc(size));
  const uint64_t span = ticks() - start;
  if (block == nullptr) fail_memory(size);
  stamp(block, size);
  slot = block;
  worker.live_add(static_cast<int64_t>(size) - static_cast<int64_t>(old_size));
  worker.latency->add_ticks(span);
}
