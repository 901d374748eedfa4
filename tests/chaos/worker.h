// One thread's share of the chaos program: operations that follow from the seed, the worker and the step
// alone.
#ifndef HUMMOCK_TESTS_CHAOS_WORKER_H
#define HUMMOCK_TESTS_CHAOS_WORKER_H

#include <hummock/hummock.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "blocks.h"

namespace chaos {

inline constexpr size_t kRound = 250;  // steps; then the workers meet, and exchange blocks

struct Settings {
  uint64_t seed = 1;
  size_t steps = 2000;  // a worker
  size_t threads = 4;
  std::string mode = "default";
  std::string plugin;             // a file to load and unload
  std::set<std::string> without;  // operations that are left out, to narrow a finding down
  unsigned patience = 300;        // seconds for a round, then it is a hang
  bool may_fail() const { return mode == "refuse" || mode == "limit"; }
  bool has(const char* operation) const { return without.count(operation) == 0; }
};
extern Settings settings;

// A block of this thread's, unless it has one, that is freed after the thread's own code has ended.
void free_at_thread_end(size_t size);

inline hummock_heap_t* heap_of(void* heap) {
  return static_cast<hummock_heap_t*>(heap);
}

class Worker {
 public:
  explicit Worker(size_t index) : index_(index), posts_(settings.threads) {
    // Where memory is out they could not grow.
    for (std::vector<Block>& blocks : posts_) blocks.reserve(kRound);
  }

  void run(size_t first, size_t steps);
  void finish();

  // What it does now, for who waits in vain.
  std::atomic<const char*> doing{"nothing"};
  std::atomic<size_t> at{0};

  // Between rounds, while no worker runs: blocks that go to others, and those that came.
  std::vector<Block>& posted_to(size_t index) { return posts_[index]; }
  void receive(std::vector<Block>& blocks);
  void collect(std::vector<Block>* all) const;
  uint64_t digest() const { return digest_; }
  size_t misses() const { return misses_; }

 private:
  static constexpr size_t kSlots = 160;
  static constexpr size_t kHeaps = 3;
  static constexpr size_t kMostLive = size_t{160} << 20;
  using Random = support::Random;

  void step(size_t number);
  void work_on(Random& random);
  void rare(Random& random);
  size_t draw_size(Random& random) const;
  void begin(Random& random, Block& block);
  void* ask(Random& random, Block& block);
  void resize(Random& random, Block& block);
  void give(Random& random, Block& block);
  void release(Block& block, size_t how);
  void admit(Random& random, Block& block, void* address);
  void missed(const Block& block, bool sets_errno);
  void use_heap(Random& random);
  void post(Random& random);
  void other_thread(Random& random);
  void child(Random& random);
  void in_child(Random& random);
  void spawn();
  void load(Random& random);
  void figures(Random& random);
  void note(uint64_t what, uint64_t value) {
    digest_ = (digest_ ^ what ^ (value << 8)) * 0x9E3779B97F4A7C15u;
  }

  const size_t index_;
  Block slots_[kSlots];
  std::vector<Block> got_;  // from others; freed one by one
  void* heaps_[kHeaps] = {};
  std::vector<std::vector<Block>> posts_;
  size_t live_ = 0;  // bytes asked for
  uint64_t digest_ = 0, tags_ = 0;
  size_t misses_ = 0;  // requests that the system did not let be served
};

}  // namespace chaos

#endif  // HUMMOCK_TESTS_CHAOS_WORKER_H
