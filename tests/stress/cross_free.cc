// 2 to 64 threads send each other blocks of all sizes; the receiver checks and frees them.
#include <mutex>

#include "stress/stress.h"

namespace {

struct Inbox {
  std::mutex mutex;
  std::vector<void*> blocks;
};

void run(size_t threads, size_t rounds) {
  std::vector<Inbox> inboxes(threads);
  const auto drain = [](Inbox& inbox) {
    std::vector<void*> taken;
    {
      std::lock_guard<std::mutex> lock(inbox.mutex);
      taken.swap(inbox.blocks);
    }
    for (void* block : taken) stress::finish(block);
  };
  stress::run_threads(threads, [&](size_t self) {
    support::Random random(support::run_seed() + threads * 1000 + self);
    for (size_t round = 0; round < rounds; ++round) {
      Inbox& other = inboxes[random.below(threads)];
      const size_t most = random.one_in(64) ? size_t{4} << 20 : random.one_in(8) ? 100000 : 2000;
      std::vector<void*> batch;
      for (size_t i = random.between(1, most > 200000 ? 2 : 64); i > 0; --i) {
        batch.push_back(stress::fresh(random, most));
      }
      {
        std::lock_guard<std::mutex> lock(other.mutex);
        other.blocks.insert(other.blocks.end(), batch.begin(), batch.end());
      }
      drain(inboxes[self]);
    }
  });
  for (Inbox& inbox : inboxes) drain(inbox);
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  for (size_t threads : {2, 3, 4, 8, 16, 32, 64}) run(threads, support::scaled(24000 / threads, 5));
}
