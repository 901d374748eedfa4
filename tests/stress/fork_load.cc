// Forks from a process whose threads allocate without pause. The children free what they inherit,
// allocate, and some start threads or fork again. No hang, no failure.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "stress/stress.h"

namespace {

constexpr size_t kThreads = 8;
constexpr size_t kAtOnce = 4;
std::atomic<bool> stop{false};
std::vector<void*> inherited;

void keep_busy(size_t self) {
  // Few cores, many threads: the forks should not have to wait for their turn.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
  support::Random random(support::run_seed() + self);
  void* blocks[64] = {};
  while (!stop.load(std::memory_order_relaxed)) {
    void*& block = blocks[random.below(64)];
    if (block != nullptr) stress::finish(block);
    block = stress::fresh(random, random.one_in(200) ? 300000 : 2000);
  }
  for (void* block : blocks) {
    if (block != nullptr) stress::finish(block);
  }
}

int live_as_child(uint64_t seed) {
  alarm(600);
  support::Random random(seed);
  std::vector<void*> own;
  for (size_t i = 0; i < 64; ++i) own.push_back(stress::fresh(random, i % 16 == 0 ? 300000 : 1000));
  for (void* block : inherited) stress::finish(block);
  for (void* block : own) stress::finish(block);
    // No new threads after a fork of many: the thread sanitizer does not allow them, and qemu 7.2 aborts in
    // its own tables (qemu_plugin_vcpu_init_hook), whatever the malloc.
#if !defined(__SANITIZE_THREAD__) && !HUMMOCK_TEST_EMULATED
  if (random.one_in(20)) {
    stress::run_threads(2, [&](size_t self) {
      support::Random mine(seed + self);
      for (size_t i = 0; i < 200; ++i) stress::finish(stress::fresh(mine, 2000));
    });
  }
#endif
  if (random.one_in(20)) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (size_t i = 0; i < 200; ++i) stress::finish(stress::fresh(random, 2000));
      _exit(0);
    }
    int status = -1;
    if (grandchild < 0 || waitpid(grandchild, &status, 0) != grandchild || status != 0) return 1;
  }
  return 0;
}

void await_child() {
  int status = -1;
  stress::require(waitpid(-1, &status, 0) > 0, "waitpid");
  stress::require(status == 0, "the child allocates and frees");
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  const uint64_t seed = support::run_seed();
  support::Random random(seed);
  for (size_t i = 0; i < 300; ++i) inherited.push_back(stress::fresh(random, 4000));
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) crew.emplace_back(keep_busy, t);
  const size_t forks = support::scaled(10000, 20);
  for (size_t i = 0; i < forks; ++i) {
    const pid_t child = fork();
    stress::require(child >= 0, "fork");
    if (child == 0) _exit(live_as_child(seed + i));
    stress::finish(stress::fresh(random, 3000));
    if (i >= kAtOnce) await_child();
  }
  for (size_t i = 0; i < std::min(forks, kAtOnce); ++i) await_child();
  stop = true;
  for (std::thread& thread : crew) thread.join();
  for (void* block : inherited) stress::finish(block);
}
