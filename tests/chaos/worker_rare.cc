// What a worker does now and then: heaps, threads, processes, plugins, figures.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <exception>
#include <thread>

#include "calls.h"
#include "refuse.h"
#include "worker.h"

namespace chaos {
namespace {

// Ends when its thread does, after the thread's own code: allocates and frees then.
struct AtThreadEnd {
  void* block = nullptr;
  ~AtThreadEnd() {
    calls::give(block);
    calls::give(calls::get(300));
  }
};
thread_local AtThreadEnd at_thread_end;

}  // namespace

// Where memory runs out, the C library ends a program that registers a thread's destructor.
void free_at_thread_end(size_t size) {
  if (settings.mode == "limit") return;
  if (at_thread_end.block == nullptr) at_thread_end.block = calls::get(size);
}

void Worker::rare(Random& random) {
  const size_t dice = random.below(100);
  if (dice < 30) return use_heap(random);
  if (dice < 45) return figures(random);
  if (dice < 60) {
    doing = "trim";
    if (settings.has("trim")) calls::trim(random.one_in(2) ? 0 : random.size_up_to(64 << 20));
    return;
  }
  if (dice < 75) return other_thread(random);
  if (dice < 82 || (settings.mode == "fork" && dice < 98)) return child(random);
  if (dice < 84) return spawn();
  if (dice < 92) return load(random);
  doing = "signal";
  if (settings.has("signal")) kill(getpid(), SIGUSR1);
}

void Worker::use_heap(Random& random) {
  void*& heap = heaps_[random.below(kHeaps)];
  if (!settings.has("heap")) return;
  if (heap == nullptr) {
    doing = "heap_create";
    heap = hummock_heap_create();
    if (heap == nullptr) missed({}, false);
    return;
  }
  doing = "heap_stats";
  size_t blocks = 0;
  for (const Block& block : slots_) blocks += block.address != nullptr && block.heap == heap;
  hummock_heap_stats_t stats = {};
  stats.size = sizeof stats;
  require(hummock_heap_stats(heap_of(heap), &stats) == 0, "a heap's figures");
  // Checked mode holds freed blocks back, and counts them.
  require(settings.mode == "checked" ? stats.live_blocks >= blocks : stats.live_blocks == blocks,
          "a heap's live blocks");
  if (random.one_in(2)) return;
  doing = "heap_destroy";
  for (Block& block : slots_) {
    if (block.address == nullptr || block.heap != heap) continue;
    check(block);
    live_ -= block.size;
    block = {};
  }
  hummock_heap_destroy(heap_of(heap));
  heap = nullptr;
}

// A thread that lives for a few calls on this one's blocks.
void Worker::other_thread(Random& random) {
  if (!settings.has("thread")) return;
  doing = "thread";
  const auto act = [&] {
    if (random.one_in(2)) free_at_thread_end(500);
    for (size_t i = random.below(40); i != 0; --i) {
      Block& block = slots_[random.below(kSlots)];
      if (block.address == nullptr) {
        begin(random, block);
      } else {
        check(block);
        give(random, block);
      }
    }
  };
  try {
    std::thread(act).join();
  } catch (const std::exception&) {
    missed({}, false);  // the thread's stack, or what std::thread allocates
  }
}

void Worker::in_child(Random& random) {
  refuse::one_in(0, 0);
  for (Block& block : slots_) check(block);
  for (size_t i = 0; i < 100; ++i) {
    Block& block = slots_[random.below(kSlots)];
    if (block.address == nullptr) {
      begin(random, block);
    } else {
      give(random, block);
    }
  }
  figures(random);
  if (settings.has("trim") && random.one_in(3)) calls::trim(0);
  if (random.one_in(3)) other_thread(random);
}

void Worker::child(Random& random) {
  if (!settings.has("fork")) return;
  doing = "fork";
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(settings.patience / 2);  // so that the child tells, not its parent
    in_child(random);
    _exit(0);
  }
  if (pid < 0) return missed({}, false);
  doing = "fork: waiting for the child";
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child of a fork that works");
}

void Worker::spawn() {
  if (!settings.has("spawn")) return;
  doing = "posix_spawn";
  char name[] = "/bin/true";
  char* arguments[] = {name, nullptr};
  char* nothing[] = {nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, name, nullptr, nullptr, arguments, nothing) != 0) return missed({}, false);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  require(settings.may_fail() || status == 0, "a spawned program that works");
}

void Worker::load(Random& random) {
  const size_t size = draw_size(random) % 100000;
  if (!settings.has("dlopen") || settings.plugin.empty()) return;
  doing = "dlopen";
  void* plugin = dlopen(settings.plugin.c_str(), RTLD_NOW);
  if (plugin == nullptr) return missed({}, false);
  const auto get = reinterpret_cast<void* (*)(size_t)>(dlsym(plugin, "plugin_block"));
  require(get != nullptr, "the plugin's function");
  void* block = get(size);
  doing = "dlclose";
  dlclose(plugin);
  if (block == nullptr) return missed({}, false);
  free(block);
}

void Worker::figures(Random& random) {
  const size_t which = random.below(4);
  if (!settings.has("stats")) return;
  doing = "statistics";
  if (which < 2) return calls::figures(which);
  hummock_stats_t stats = {};
  stats.size = sizeof stats;
  require(hummock_stats(&stats) == 0, "figures");
}

}  // namespace chaos
