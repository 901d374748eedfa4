// Producers allocate, consumers free, through a bounded queue: 1:1, 1:N, N:1, N:M. The memory in use
// stays near what the queue can hold.
#include <condition_variable>
#include <mutex>

#include "stress/stress.h"

namespace {

class Queue {
 public:
  void push(void* block) {
    std::unique_lock<std::mutex> lock(mutex_);
    space_.wait(lock, [&] { return count_ < kRoom; });
    ring_[(first_ + count_++) % kRoom] = block;
    filled_.notify_one();
  }
  // Null when nothing will come any more.
  void* pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    filled_.wait(lock, [&] { return count_ > 0 || closed_; });
    if (count_ == 0) return nullptr;
    void* block = ring_[first_];
    first_ = (first_ + 1) % kRoom;
    --count_;
    space_.notify_one();
    return block;
  }
  void close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    filled_.notify_all();
  }

 private:
  static constexpr size_t kRoom = 4096;
  std::mutex mutex_;
  std::condition_variable space_, filled_;
  void* ring_[kRoom] = {};
  size_t first_ = 0, count_ = 0;
  bool closed_ = false;
};

void run(size_t producers, size_t consumers, size_t blocks, size_t most) {
  Queue queue;
  std::atomic<size_t> working{producers};
  stress::run_threads(producers + consumers, [&](size_t self) {
    support::Random random(support::run_seed() + self);
    if (self >= producers) {
      while (void* block = queue.pop()) stress::finish(block);
      return;
    }
    for (size_t i = 0; i < blocks / producers; ++i) queue.push(stress::fresh(random, most));
    if (--working == 0) queue.close();
  });
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  const size_t shapes[][2] = {{1, 1}, {1, 8}, {8, 1}, {6, 6}, {32, 32}};
  for (const auto& [producers, consumers] : shapes) {
    run(producers, consumers, support::scaled(400000, 500), 400);
    run(producers, consumers, support::scaled(20000, 100), 100000);
    const size_t resident = stress::resident_bytes();
    if (!HUMMOCK_TEST_SANITIZED) {
      stress::require(resident < size_t{320} << 20, "memory follows the queue, not the traffic");
    }
  }
}
