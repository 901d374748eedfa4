// The profiler is started and stopped thousands of times beside 64 threads that allocate, free what others
// allocated, throw, end, load and unload a library, and beside forks. Nothing is lost or changed, and in the
// end no sample is live whose block was freed. TEST_SCALE=10 makes it 10,000 starts.
#include <dlfcn.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include "stress/plugin.h"
#include "stress/stress.h"

namespace {

#ifdef STRESS_PLAIN
using Start = int(size_t);
using Stop = int();
auto* const start_profile = reinterpret_cast<Start*>(dlsym(RTLD_DEFAULT, "hummock_profile_start"));
auto* const stop_profile = reinterpret_cast<Stop*>(dlsym(RTLD_DEFAULT, "hummock_profile_stop"));
auto* const write_profile =
    reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "hummock_profile_write"));
#else
constexpr auto* start_profile = hummock_profile_start;
constexpr auto* stop_profile = hummock_profile_stop;
constexpr auto* write_profile = hummock_profile_write;
#endif

constexpr size_t kThreads = 64;
constexpr size_t kShelf = 512;
const char* plugin;
std::atomic<bool> ended{false};
std::atomic<void*> shelf[kShelf];  // what any thread may free

__attribute__((noinline)) void throw_from_below(unsigned depth) {
  if (depth != 0) {
    const std::string room(100 * depth, 'x');
    throw_from_below(depth - 1);
    if (room.empty()) abort();
  }
  throw std::runtime_error(std::string(200, 'y'));
}

void use(size_t self) {
  support::Random random(support::run_seed() + self);
  void* own[64] = {};
  while (!ended.load(std::memory_order_relaxed)) {
    void*& block = own[random.below(64)];
    if (block != nullptr) stress::finish(block);
    block = stress::fresh(random, random.one_in(50) ? 700000 : 1500);
    if (random.one_in(3)) {
      void* other = shelf[random.below(kShelf)].exchange(block, std::memory_order_acq_rel);
      block = nullptr;
      if (other != nullptr) stress::finish(other);
    }
    if (random.one_in(100)) {
      try {
        throw_from_below(random.below(10));
      } catch (const std::runtime_error& error) {
        stress::require(error.what()[0] == 'y', "what is thrown arrives");
      }
    }
    if (random.one_in(2000)) {
      std::thread brief([&] { stress::finish(stress::fresh(random, 100000)); });
      brief.join();
    }
    if (random.one_in(20000)) stress::load_plugin(plugin);
  }
  for (void* block : own) {
    if (block != nullptr) stress::finish(block);
  }
}

void empty_shelf() {
  for (auto& place : shelf) {
    void* block = place.exchange(nullptr, std::memory_order_acq_rel);
    if (block != nullptr) stress::finish(block);
  }
}

int live_as_child() {
  alarm(600);
  support::Random random(1);
  for (unsigned i = 0; i < 200; ++i) stress::finish(stress::fresh(random, 3000));
  if (start_profile(random.one_in(2) ? 1 : 1000) != 0) return 1;
  for (unsigned i = 0; i < 200; ++i) stress::finish(stress::fresh(random, 3000));
  return stop_profile();
}

void fork_one() {
  const pid_t child = fork();
  stress::require(child >= 0, "fork");
  if (child == 0) _exit(live_as_child());
  int status = -1;
  stress::require(waitpid(child, &status, 0) == child && status == 0, "the child allocates and samples");
}

// Live bytes, as the first line of a written profile has them.
unsigned long long live_bytes() {
  char path[] = "/tmp/hummock-profile-XXXXXX";
  const int fd = mkstemp(path);
  stress::require(fd >= 0 && write_profile(path) == 0, "the profile is written");
  char text[256] = {};
  unsigned long long blocks = 1, bytes = 1;
  stress::require(pread(fd, text, sizeof text - 1, 0) > 0, "and read");
  stress::require(sscanf(text, "heap profile: %llu: %llu [", &blocks, &bytes) == 2, "and as it should be");
  close(fd);
  unlink(path);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  support::HangGuard guard(static_cast<unsigned>(280 * std::max(1.0, support::scale())));
  if (argc != 2) return 2;
  plugin = argv[1];
  support::run_seed();  // before there are threads, and children
  stress::require(start_profile(1) == 0 && stop_profile() == 0, "start and stop");
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) crew.emplace_back(use, t);
  // Another thread that does the same: the last of both wins.
  crew.emplace_back([] {
    support::Random random(support::run_seed() + 99);
    for (size_t i = support::scaled(250, 20); i > 0 && !ended.load(std::memory_order_relaxed); --i) {
      stress::require(random.one_in(2) ? start_profile(64 << 10) == 0 : stop_profile() == 0, "two at once");
      std::this_thread::yield();
    }
  });
  support::Random random(support::run_seed() + 7);
  const size_t rounds = support::scaled(1000, 40);
  for (size_t i = 0; i < rounds; ++i) {
    constexpr size_t kMeans[] = {1, 100, 4096, 1 << 19};
    stress::require(start_profile(kMeans[random.below(4)]) == 0, "start");
    stress::finish(stress::fresh(random, 5000));
    if (random.one_in(4)) std::this_thread::yield();
    if (i % 50 == 0) fork_one();
    stress::require(stop_profile() == 0, "stop");
    if (i % 100 == 0) live_bytes();
  }
  ended = true;
  for (std::thread& thread : crew) thread.join();
  empty_shelf();
  stop_profile();
  // The C++ run time keeps a block or two: of exceptions, of threads.
  const unsigned long long live = live_bytes();
  if (live > 200000) fprintf(stderr, "%llu bytes are still live\n", live);
  stress::require(live <= 200000, "no sample outlives its block");
}
