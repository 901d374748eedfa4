// Threads exchange blocks through atomic slots without any lock: what comes out of a slot is checked,
// perhaps resized, and freed by whoever got it.
#include "stress/stress.h"

namespace {

constexpr size_t kSlots = 1024;
std::atomic<void*> slots[kSlots];

void run(size_t threads, size_t rounds, size_t most) {
  stress::run_threads(threads, [&](size_t self) {
    support::Random random(support::run_seed() * 7 + threads * 1000 + self);
    for (size_t round = 0; round < rounds; ++round) {
      void* mine = stress::fresh(random, most);
      void* other = slots[random.below(kSlots)].exchange(mine, std::memory_order_acq_rel);
      if (other == nullptr) continue;
      if (random.one_in(16)) {
        stress::check(other);
        other = memory::resize(other, sizeof(stress::Head) + random.below(most));
        stress::require(other != nullptr, "memory for realloc");
        memory::give(other);
      } else {
        stress::finish(other);
      }
    }
  });
  for (std::atomic<void*>& slot : slots) {
    if (void* left = slot.exchange(nullptr)) stress::finish(left);
  }
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  for (size_t threads : {2, 4, 16, 64}) {
    run(threads, support::scaled(1000000 / threads, 50), 64);
    run(threads, support::scaled(400000 / threads, 50), 3000);
    run(threads, support::scaled(40000 / threads, 10), 300000);
  }
}
