// Memory is given back from all sides (trim, statistics, bursts that come and go) while other threads
// use it.
#include "stress/stress.h"

namespace {

std::atomic<bool> stop{false};

void burst(size_t self) {
  support::Random random(support::run_seed() + self);
  const size_t rounds = support::scaled(60, 3);
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<void*> blocks;
    const size_t most = random.one_in(3) ? 2000000 : 2000;
    for (size_t i = most > 10000 ? 40 : support::scaled(6000, 500); i > 0; --i) {
      blocks.push_back(stress::fresh(random, most));
    }
    for (size_t i = 0; i < blocks.size(); ++i) std::swap(blocks[i], blocks[random.below(blocks.size())]);
    for (void* block : blocks) stress::finish(block);
  }
}

void give_back(size_t) {
  while (!stop.load(std::memory_order_relaxed)) {
    memory::trim();
#ifndef STRESS_PLAIN
    hummock_stats_t stats = {};
    stats.size = sizeof(stats);
    stress::require(hummock_stats(&stats) == 0, "statistics");
    hummock_heap_t* heap = hummock_heap_create();
    for (size_t size = 1; size < 5000000; size *= 3) {
      stress::require(hummock_heap_malloc(heap, size) != nullptr, "memory of a heap");
    }
    hummock_heap_destroy(heap);
#endif
    usleep(200);
  }
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  for (size_t threads : {2, 8, 24}) {
    stop = false;
    std::vector<std::thread> background;
    for (size_t i = 0; i < 2; ++i) background.emplace_back(give_back, i);
    stress::run_threads(threads, burst);
    stop = true;
    for (std::thread& thread : background) thread.join();
  }
}
