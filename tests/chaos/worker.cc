#include "worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <system_error>
#include <thread>

#include "calls.h"
#include "refuse.h"

extern char** environ;

namespace chaos {
namespace {

hummock_heap_t* heap_of(void* heap) {
  return static_cast<hummock_heap_t*>(heap);
}

bool reads_zero(const char* block, size_t size) {
  constexpr size_t kEnd = 4096;
  if (size <= 2 * kEnd) return support::all_zero(block, 0, size);
  return support::all_zero(block, 0, kEnd) && support::all_zero(block, size / 2, size / 2 + 64) &&
         support::all_zero(block, size - kEnd, size);
}

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

void Worker::run(size_t first, size_t steps) {
  if (at_thread_end.block == nullptr) at_thread_end.block = calls::get(1000);
  for (size_t i = first; i < first + steps; ++i) step(i);
  refuse::one_in(0, 0);
  doing = "nothing";
}

void Worker::step(size_t number) {
  Random random((settings.seed * 0x2545F4914F6CDD1Du + index_) * 0x9E3779B97F4A7C15u + number);
  at = number;
  if (settings.mode == "refuse") {
    static constexpr unsigned kRates[] = {0, 0, 0, 50, 6, 1};
    const unsigned rate = kRates[random.below(6)];
    refuse::one_in(rate, random.next());
  }
  if (random.below(100) < 96) return work_on(random);
  rare(random);
}

void Worker::work_on(Random& random) {
  Block& block = slots_[random.below(kSlots)];
  const size_t dice = random.below(100);
  if (!got_.empty() && dice < 20) {
    check(got_.back());
    give(random, got_.back());
    got_.pop_back();
    return;
  }
  if (block.address == nullptr) return begin(random, block);
  check(block);
  if (dice < 55) return give(random, block);
  if (dice < 90) return resize(random, block);
  if (dice < 97) return post(random);
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

// Most are small, a few are long, up to 100 MiB.
size_t Worker::draw_size(Random& random) const {
  static constexpr size_t kMost[] = {64,    256,   1024,      1024,    8192,
                                     65536, 65536, 600 << 10, 4 << 20, size_t{100} << 20};
  const size_t kind = random.below(10);
  return random.size_up_to(kind == 9 && !random.one_in(4) ? size_t{1} << 20 : kMost[kind]);
}

void Worker::missed(const Block& block, bool sets_errno) {
  ++misses_;
  require(settings.may_fail(), "memory, for the system refuses none", block);
  if (sets_errno) require(errno == ENOMEM, "errno of a failed request", block);
}

void Worker::admit(Random& random, Block& block, void* address) {
  block.address = static_cast<char*>(address);
  block.usable = block.how == How::plugin ? block.size : calls::usable(address);
  require(support::is_aligned(address, block.alignment), "the alignment asked for", block);
  require(block.usable >= block.size, "usable size of at least the size asked for", block);
  block.filled = random.one_in(4) ? block.usable : block.size;
  block.tag = (++tags_ << 8 | index_) * 0x9E3779B97F4A7C15u ^ reinterpret_cast<uintptr_t>(address);
  support::fill(address, block.tag, block.filled);
  live_ += block.size;
}

void Worker::begin(Random& random, Block& block) {
  block = {};
  block.size = draw_size(random);
  if (live_ + block.size > kMostLive) block.size %= 4096;
  note(1, block.size);
  errno = 0;
  void* address = ask(random, block);
  if (address == nullptr) return missed(block, block.how != How::made && block.how != How::made_aligned);
  admit(random, block, address);
}

void* Worker::ask(Random& random, Block& block) {
  const size_t how = random.below(16);
  const size_t alignment = size_t{1} << random.between(4, random.one_in(8) ? 25 : 13);
  const auto aligned = [&](How kind) {
    block.how = kind;
    block.alignment = alignment;
    return alignment;
  };
  block.alignment = 16;
  void* address = nullptr;
  int error = 0;
  switch (how) {
    case 0:
    case 1:
      doing = "calloc";
      address = calls::get_zero(1, block.size);
      if (address != nullptr)
        require(reads_zero(static_cast<char*>(address), block.size), "zeros from calloc");
      return address;
    case 2:
      doing = "memalign";
      return calls::get_aligned(aligned(How::aligned), block.size);
    case 3:
      doing = "aligned_alloc";
      return calls::get_aligned_c(aligned(How::aligned), block.size);
    case 4:
      doing = "posix_memalign";
      error = calls::get_posix(&address, aligned(How::aligned), block.size);
      require(error == 0 || error == ENOMEM, "posix_memalign's error");
      if (error != 0) errno = error;
      return error == 0 ? address : nullptr;
    case 5:
      doing = "valloc";
      block.alignment = 4096;
      block.how = How::aligned;
      return calls::get_pages(block.size);
    case 6:
    case 7:
      doing = "operator new";
      block.how = How::made;
      return calls::get_new(block.size);
    case 8:
      doing = "operator new, aligned";
      return calls::get_new_aligned(block.size, aligned(How::made_aligned));
    case 9: {
      void* heap = heaps_[random.below(kHeaps)];
      if (heap == nullptr) return calls::get(block.size);
      doing = "heap_malloc";
      block.how = How::heap;
      block.heap = heap;
      return hummock_heap_malloc(heap_of(heap), block.size);
    }
    default:
      doing = "malloc";
      return calls::get(block.size);
  }
}

void Worker::resize(Random& random, Block& block) {
  const size_t size =
      std::max<size_t>(1, random.one_in(2) ? draw_size(random) : block.size + random.below(block.size + 100));
  if (block.how == How::made || block.how == How::made_aligned || live_ + size > kMostLive) return;
  note(2, size);
  doing = "realloc";
  errno = 0;
  void* moved = block.how == How::heap ? hummock_heap_realloc(heap_of(block.heap), block.address, size)
                : random.one_in(4)     ? calls::resize_array(block.address, size, 1)
                                       : calls::resize(block.address, size);
  if (moved == nullptr) {
    check(block);
    return missed(block, true);
  }
  require(support::intact(moved, block.tag, block.filled, std::min(size, block.size)),
          "realloc keeps the contents", block);
  live_ -= block.size;
  block.size = size;
  block.alignment = size > 8 ? 16 : 8;
  if (block.how != How::heap) block.how = How::plain;
  admit(random, block, moved);
}

void Worker::give(Random& random, Block& block) {
  note(3, block.size);
  live_ -= block.size;
  release(block, random.below(4));
}

void Worker::release(Block& block, size_t how) {
  doing = "free";
  errno = 4711;
  switch (block.how) {
    case How::made:
      calls::give_new(block.address, block.size);
      break;
    case How::made_aligned:
      calls::give_new_aligned(block.address, block.size, block.alignment);
      break;
    case How::heap:
      if (how == 0) {
        hummock_free(block.address);
      } else {
        hummock_heap_free(heap_of(block.heap), block.address);
      }
      break;
    default:
      calls::give(block.address);
  }
  require(errno == 4711, "free keeps errno", block);
  block = {};
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

// To another worker, which gets it after this round. A heap's blocks stay: the heap may be ended.
void Worker::post(Random& random) {
  const size_t to = random.below(settings.threads);
  Block& block = slots_[random.below(kSlots)];
  if (block.address == nullptr || block.how == How::heap || !settings.has("post")) return;
  note(4, block.size);
  live_ -= block.size;
  posts_[to].push_back(block);
  block = {};
}

void Worker::receive(std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    live_ += block.size;
    got_.push_back(block);
  }
  blocks.clear();
}

void Worker::collect(std::vector<Block>* all) const {
  for (const Block& block : slots_) {
    if (block.address != nullptr) all->push_back(block);
  }
  all->insert(all->end(), got_.begin(), got_.end());
}

// A thread that lives for a few calls on this one's blocks.
void Worker::other_thread(Random& random) {
  if (!settings.has("thread")) return;
  doing = "thread";
  const auto act = [&] {
    if (random.one_in(2)) at_thread_end.block = calls::get(500);
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
  } catch (const std::system_error&) {
    missed({}, false);  // the thread's stack
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

void Worker::finish() {
  for (Block& block : got_) check(block), release(block, 1);
  got_.clear();
  for (Block& block : slots_) {
    check(block);
    if (block.address != nullptr) release(block, 1);
  }
  for (void*& heap : heaps_) hummock_heap_destroy(heap_of(heap)), heap = nullptr;
}

}  // namespace chaos
