// Statistics and trims from several threads, beside threads that use blocks of every size up to 100 MiB.
#include "stress/stress.h"

namespace {

std::atomic<bool> stop{false};

// Sizes of every magnitude are as likely: slabs, spans, blocks with a mapping of their own.
size_t any_size(support::Random& random) {
  const size_t most = size_t{1} << (4 + random.below(23));
  return most + random.below(most / 2 + 1);
}

void touch_ends(void* block, size_t size) {
  stress::require(block != nullptr, "memory");
  static_cast<char*>(block)[0] = 1;
  static_cast<char*>(block)[size - 1] = 1;
}

void use(size_t self) {
  support::Random random(support::run_seed() + self);
  void* live[8] = {};
  for (size_t i = support::scaled(20000, 1000); i > 0; --i) {
    void*& block = live[random.below(8)];
    const size_t size = any_size(random);
    if (block != nullptr && random.one_in(4) && size < (size_t{16} << 20)) {
      block = memory::resize(block, size);
    } else {
      memory::give(block);
      block = memory::get(size);
    }
    touch_ends(block, size);
  }
  for (void* block : live) memory::give(block);
}

#ifdef STRESS_PLAIN
void look(FILE* out) {
  const struct mallinfo2 info = mallinfo2();
  stress::require(info.hblks < 1000000 && info.hblkhd < uint64_t{1} << 40, "figures of this process");
  stress::require(malloc_info(0, out) == 0, "malloc_info");
}
#else
void look(FILE*) {
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  stress::require(hummock_stats(&stats) == 0, "statistics");
}
#endif

void watch(size_t self) {
  FILE* out = fopen("/dev/null", "w");
  stress::require(out != nullptr, "/dev/null");
  while (!stop.load(std::memory_order_relaxed)) {
    look(out);
    if (self == 0) memory::trim();
  }
  fclose(out);
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::run_seed();  // before there are threads, and children
  std::vector<std::thread> watchers;
  for (size_t i = 0; i < 2; ++i) watchers.emplace_back(watch, i);
  stress::run_threads(4, use);
  stop = true;
  for (std::thread& thread : watchers) thread.join();
}
