// Threads that end leave blocks which others free, and free blocks of threads that have ended; some do
// so in the destructors of their thread-local objects.
#include <mutex>

#include "stress/stress.h"

namespace {

class Pool {
 public:
  void put(void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }
  void* take(support::Random& random) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (blocks_.empty()) return nullptr;
    std::swap(blocks_[random.below(blocks_.size())], blocks_.back());
    void* block = blocks_.back();
    blocks_.pop_back();
    return block;
  }

 private:
  std::mutex mutex_;
  std::vector<void*> blocks_;
} pool;

struct LastWill {
  void* block = nullptr;
  ~LastWill() {
    if (block == nullptr) return;
    stress::finish(block);
    support::Random random(reinterpret_cast<uintptr_t>(this));
    pool.put(stress::fresh(random, 500));
  }
};
thread_local LastWill last_will;

void live(uint64_t seed) {
  support::Random random(seed);
  for (size_t i = random.size_up_to(400); i > 0; --i) {
    pool.put(stress::fresh(random, random.one_in(100) ? 1000000 : 3000));
    if (void* block = random.one_in(8) ? nullptr : pool.take(random)) stress::finish(block);
  }
  if (random.one_in(2)) last_will.block = stress::fresh(random, 1000);
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::Random random(support::run_seed());
  const size_t waves = support::scaled(250, 5);
  for (size_t wave = 0; wave < waves; ++wave) {
    const uint64_t seed = random.next();
    stress::run_threads(random.between(1, 64), [&](size_t self) { live(seed + self); });
    // What was left behind must not pile up.
    for (size_t i = 0; i < 4000; ++i) {
      void* block = pool.take(random);
      if (block == nullptr) break;
      stress::finish(block);
    }
  }
  while (void* block = pool.take(random)) stress::finish(block);
  // Nothing is live now; what is kept is bounded.
  memory::trim();
  if (!HUMMOCK_TEST_SANITIZED) {
    const size_t resident = stress::resident_bytes();
    stress::require(resident > 0 && resident < size_t{64} << 20, "memory after the churn");
  }
}
