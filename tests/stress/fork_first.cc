// One thread makes the library's first call, its first space and its first proxy, while another forks. The
// child does the same. Each time in a process of its own, in which nothing has been called yet.
#include <hummock/hummock.h>
#include <hummock/proxy.h>
#include <hummock/space.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "support/support.h"

namespace {

constexpr int kProcesses = 1500;
constexpr unsigned kPatience = 100;  // seconds, against hangs alone
constexpr unsigned kMostSpins = 8'000;

std::atomic<bool> begun;

bool use_heap() {
  void* block = hummock_malloc(100);
  hummock_free(block);
  return block != nullptr;
}

bool use_space() {
  hummock_space_options_t options = {};
  options.size = sizeof options;
  options.initial = 1 << 20;
  hummock_space_t* space = hummock_space_create(&options, nullptr);
  hummock_space_destroy(space);
  return space != nullptr;
}

bool use_proxy() {
  hummock_proxy_options_t options = {};
  options.size = sizeof options;
  options.bucket_count = 8;
  options.bucket_bytes = 1 << 16;
  hummock_proxy_t* proxy = hummock_proxy_create(&options);
  hummock_proxy_destroy(proxy);
  return proxy != nullptr;
}

bool (*const kUses[])() = {use_heap, use_space, use_proxy};

void* first_use(void* use) {
  while (!begun.load(std::memory_order_acquire)) {
  }
  if (!reinterpret_cast<bool (*)()>(use)()) _exit(3);
  return nullptr;
}

void spin(unsigned turns) {
  for (std::atomic<unsigned> left = turns; left.load(std::memory_order_relaxed) != 0;
       left.fetch_sub(1, std::memory_order_relaxed)) {
  }
}

// Ends the process.
[[noreturn]] void fork_beside(bool (*use)(), unsigned turns) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, first_use, reinterpret_cast<void*>(use)) != 0) _exit(4);
  begun.store(true, std::memory_order_release);
  spin(turns);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatience);
    _exit(use() ? 0 : 5);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) _exit(6);
  pthread_join(thread, nullptr);
  _exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace

int main() {
  support::Random random(support::run_seed());
  for (int i = 0; i < kProcesses; ++i) {
    const auto turns = static_cast<unsigned>(random.below(kMostSpins));
    const pid_t process = fork();
    if (process == 0) fork_beside(kUses[i % 3], turns);
    int status = 0;
    if (process < 0 || waitpid(process, &status, 0) != process) return 2;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "process %d, which forks after %u turns: status %#x\n", i, turns, status);
      return 1;
    }
  }
  printf("%d children of a fork beside the first call ended well\n", kProcesses);
  return 0;
}
