// Handlers of fork that allocate: one that was registered before the allocator's runs while that holds all
// its locks for the fork, the other outside. Beside threads that allocate, map, trim and ask for figures.
#include <pthread.h>
#include <sys/wait.h>

#include "stress/stress.h"

namespace {

std::atomic<bool> stop{false};
std::atomic<int> calls{0};

void use_all_sizes() {
  ++calls;
  for (size_t size = 10; size < (size_t{50} << 20); size *= 3) {
    char* block = static_cast<char*>(memory::get(size));
    stress::require(block != nullptr, "memory in a handler of fork");
    block[0] = block[size - 1] = 1;
    block = static_cast<char*>(memory::resize(block, size + size / 2));
    stress::require(block != nullptr && block[0] == 1 && block[size - 1] == 1, "contents kept");
    memory::give(block);
  }
  memory::trim();
#ifdef STRESS_PLAIN
  mallinfo2();
#else
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  stress::require(hummock_stats(&stats) == 0, "statistics");
#endif
}

void register_handlers() {
  pthread_atfork(use_all_sizes, use_all_sizes, use_all_sizes);
}

// Before any constructor, the allocator's among them.
__attribute__((section(".preinit_array"), used)) void (*const before_all)() = register_handlers;

void keep_busy(size_t self) {
  support::Random random(support::run_seed() + self);
  while (!stop.load(std::memory_order_relaxed)) {
    void* small = stress::fresh(random, 5000);
    const size_t size = size_t{1} << (10 + random.below(17));
    char* block = static_cast<char*>(memory::get(size));
    block[0] = 1;
    block = static_cast<char*>(memory::resize(block, size + (size_t{1} << 20)));
    if (random.one_in(50)) memory::trim();
    memory::give(block);
    stress::finish(small);
  }
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::run_seed();  // before there are threads, and children
  register_handlers();
  std::vector<std::thread> crew;
  for (size_t t = 0; t < 4; ++t) crew.emplace_back(keep_busy, t);
  const int forks = static_cast<int>(support::scaled(60, 6));
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    stress::require(child >= 0, "fork");
    if (child == 0) {
      alarm(120);
      use_all_sizes();
      _exit(0);
    }
    int status = -1;
    stress::require(waitpid(child, &status, 0) == child && status == 0, "the child's handlers allocate");
  }
  stress::require(calls == 4 * forks, "handlers run before and after each fork");
  stop = true;
  for (std::thread& thread : crew) thread.join();
}
