// Options limit_soft and limit_hard: where malloc begins to fail, what is kept, and who is told.
#include <doctest/doctest.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "hummock/hummock.h"
#include "os/os.h"
#include "pages/limits.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct Limits {
  Limits(const char* soft, const char* hard) {
    hummock_free(hummock_malloc(1));  // which reads the options first
    CHECK(hummock_option_set("limit_soft", soft) == 0);
    CHECK(hummock_option_set("limit_hard", hard) == 0);
  }
  ~Limits() {
    hummock_option_set("limit_soft", "none");
    hummock_option_set("limit_hard", "none");
    hummock_on_limit(nullptr);
    hummock_trim(0);
  }
};

hummock_stats_t stats() {
  hummock_stats_t out = {};
  out.size = sizeof out;
  hummock_stats(&out);
  return out;
}

// Blocks of that size until there are no more; their bytes.
uint64_t fill(size_t size, std::vector<void*>* blocks) {
  uint64_t bytes = 0;
  errno = 0;
  while (void* block = hummock_malloc(size)) {
    blocks->push_back(block);
    bytes += size;
    if (bytes > uint64_t{4096} * kMiB) break;
  }
  CHECK(errno == ENOMEM);
  return bytes;
}

void free_all(std::vector<void*>* blocks) {
  for (void* block : *blocks) hummock_free(block);
  blocks->clear();
}

std::atomic<int> told_soft, told_hard;
std::atomic<size_t> told_limit;

void handler(int which, size_t, size_t limit) {
  ++(which == HUMMOCK_LIMIT_HARD ? told_hard : told_soft);
  told_limit = limit;
  hummock_free(hummock_malloc(100 * kMiB));  // what the handler does brings no other call
}

}  // namespace

TEST_CASE("malloc fails at the hard limit, and not before") {
  const Limits limits("none", "100M");
  std::vector<void*> blocks;
  blocks.reserve(8 << 20);
  const size_t before = stats().committed;
  REQUIRE(before < kMiB);
  for (const size_t size :
       {size_t{64}, size_t{1000}, size_t{1} << 14, size_t{100} << 10, kMiB, size_t{40} << 20}) {
    INFO(size);
    fill(size, &blocks);
    const size_t live = stats().committed;
    CHECK(live <= 100 * kMiB);
    CHECK(live + (size < kMiB ? kMiB : size) >= 99 * kMiB);
    free_all(&blocks);
    void* again = hummock_malloc(90 * kMiB);
    CHECK(again != nullptr);
    hummock_free(again);
  }
  CHECK(hummock_malloc(101 * kMiB) == nullptr);
}

TEST_CASE("a call that is refused counts once, and the handler hears of it once") {
  const Limits limits("none", "100M");
  REQUIRE(hummock_on_limit([](int which, size_t, size_t) { told_hard += which == HUMMOCK_LIMIT_HARD; }) == 0);
  std::vector<void*> blocks;
  blocks.reserve(1 << 20);
  for (const size_t size : {size_t{4000}, size_t{100000}, kMiB, size_t{40} << 20}) {
    INFO(size);
    fill(size, &blocks);
    told_hard = 0;
    const size_t before = hummock::pages::limit_refusals();
    for (int i = 0; i < 10; ++i) CHECK(hummock_malloc(size) == nullptr);
    CHECK(hummock::pages::limit_refusals() - before == 10);
    CHECK(told_hard == 10);
    free_all(&blocks);
  }
}

TEST_CASE("realloc stays within it, and leaves the block alone") {
  const Limits limits("none", "64M");
  for (const size_t size : {size_t{1000}, size_t{200} << 10, size_t{40} << 20}) {
    char* block = static_cast<char*>(hummock_malloc(size));
    REQUIRE(block != nullptr);
    memset(block, 7, size);
    errno = 0;
    CHECK(hummock_realloc(block, 80 * kMiB) == nullptr);
    CHECK(errno == ENOMEM);
    CHECK(block[size - 1] == 7);
    hummock_free(block);
  }
}

// What eight threads hold at most, each of which takes until it is refused and then frees, many times.
size_t most_of_threads(size_t size) {
  const int rounds = size < kMiB ? 1 : 2000;
  std::atomic<size_t> live{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        void* first = nullptr;  // a list through the blocks: a vector would come from elsewhere
        while (void* block = hummock_malloc(size)) {
          const size_t now = live += size;
          for (size_t before = most; now > before && !most.compare_exchange_weak(before, now);) {
          }
          memcpy(block, &first, sizeof first);
          first = block;
        }
        while (void* block = first) {
          memcpy(&first, block, sizeof first);
          live -= size;
          hummock_free(block);
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return most;
}

TEST_CASE("realloc to a smaller size is not refused") {
  const Limits limits("none", "40M");
  for (const size_t size : {size_t{100}, size_t{20'000}, size_t{500'000}}) {
    INFO(size);
    std::vector<void*> blocks;
    fill(size, &blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t smaller = size / (2 + i % 40);
      memset(blocks[i], static_cast<int>(i), size);
      void* cut = hummock_realloc(blocks[i], smaller);
      REQUIRE(cut != nullptr);
      blocks[i] = cut;
      const auto* bytes = static_cast<const unsigned char*>(cut);
      CHECK(std::count(bytes, bytes + smaller, static_cast<unsigned char>(i)) ==
            static_cast<ptrdiff_t>(smaller));
    }
    free_all(&blocks);
  }
}

TEST_CASE("a block that stayed is freed with the size that it was asked with last") {
  const Limits limits("none", "40M");
  std::vector<void*> blocks = {hummock_malloc(5000)};
  fill(100, &blocks);
  fill(200, &blocks);
  const size_t room = hummock_usable_size(blocks[0]);
  void* cut = hummock_realloc(blocks[0], 150);
  CHECK(cut == blocks[0]);
  CHECK(hummock_usable_size(cut) == room);
  hummock_free_sized(cut, 150);
  blocks[0] = nullptr;
  free_all(&blocks);
}

TEST_CASE("eight threads") {
  const Limits limits("none", "100M");
  for (const size_t size : {size_t{16}, size_t{1} << 10, size_t{64} << 10, kMiB, 10 * kMiB, 33 * kMiB}) {
    INFO(size);
    const size_t most = most_of_threads(size);
    CHECK(most <= 100 * kMiB);
    CHECK(most > 99 * kMiB - (size < kMiB ? 0 : size));
  }
}

TEST_CASE("heaps") {
  const Limits limits("none", "64M");
  hummock_heap_t* heap = hummock_heap_create();
  size_t count = 0;
  while (hummock_heap_malloc(heap, 5000) != nullptr) ++count;
  const int error = errno;
  CHECK(count > 58 * kMiB / 5120);
  CHECK(error == ENOMEM);
  hummock_heap_destroy(heap);
}

TEST_CASE("the handler is told of each limit, in the call that reaches it") {
  const Limits limits("20M", "40M");
  told_soft = told_hard = 0;
  CHECK(hummock_on_limit(handler) == 0);
  std::vector<void*> blocks;
  blocks.reserve(30);
  while (blocks.size() < 18) blocks.push_back(hummock_malloc(kMiB));
  CHECK(told_soft == 0);
  while (blocks.size() < 21) blocks.push_back(hummock_malloc(kMiB));
  CHECK(told_soft == 1);
  CHECK(told_limit == 20 * kMiB);
  while (blocks.size() < 30) blocks.push_back(hummock_malloc(kMiB));
  CHECK(told_soft == 1);
  CHECK(told_hard == 0);
  CHECK(hummock_malloc(50 * kMiB) == nullptr);
  CHECK(told_hard == 1);
  CHECK(told_limit == 40 * kMiB);
  free_all(&blocks);
}

// Blocks of every kind that take new memory, until the handler is told.
template <class Take>
void until_told(size_t most, Take take) {
  const Limits limits("20M", "none");
  told_soft = 0;
  CHECK(hummock_on_limit(handler) == 0);
  std::vector<void*> blocks;
  while (told_soft == 0 && blocks.size() < most) blocks.push_back(take());
  CHECK(told_soft == 1);
  free_all(&blocks);
}

TEST_CASE("whatever kind of block takes what is in use over the soft limit") {
  for (const size_t size :
       {size_t{16}, size_t{3000}, size_t{20000}, size_t{70000}, size_t{300000}, 5 * kMiB}) {
    INFO(size);
    until_told(22 * kMiB / size, [=] { return hummock_malloc(size); });
    until_told(22 * kMiB / size, [=] { return hummock_calloc(1, size); });
    hummock_heap_t* heap = hummock_heap_create();
    until_told(22 * kMiB / size, [=] { return hummock_heap_malloc(heap, size); });
    hummock_heap_destroy(heap);
  }
}

TEST_CASE("a child of fork is told, whatever thread of its parent was told just then") {
  static std::atomic<bool> told, go_on;
  const Limits limits("20M", "none");
  told = go_on = false;
  const auto waits = [](int, size_t, size_t) {
    told = true;
    while (!go_on) std::this_thread::yield();
  };
  CHECK(hummock_on_limit(waits) == 0);
  std::thread other([] {
    void* block = hummock_malloc(30 * kMiB);
    while (!go_on) std::this_thread::yield();
    hummock_free(block);
  });
  while (!told) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    told_soft = 0;
    hummock_on_limit(handler);
    hummock_free(hummock_malloc(300'000));
    _exit(told_soft == 1 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  go_on = true;
  other.join();
}

TEST_CASE("a block that grows in place tells, too") {
  const Limits limits("20M", "none");
  told_soft = 0;
  CHECK(hummock_on_limit(handler) == 0);
  void* block = hummock_malloc(kMiB);
  for (size_t size = kMiB; size < 22 * kMiB; size += 70000) block = hummock_realloc(block, size);
  CHECK(told_soft == 1);
  hummock_free(block);
}

std::vector<void*> kept;

void free_kept(int, size_t, size_t) {
  ++told_soft;
  free_all(&kept);
  for (int i = 0; i < 1000; ++i) hummock_free(hummock_malloc(200));
}

TEST_CASE("the handler frees blocks of the class that is being asked for") {
  const Limits limits("20M", "none");
  told_soft = 0;
  CHECK(hummock_on_limit(free_kept) == 0);
  std::vector<void*> blocks;
  kept.reserve(30000);
  while (told_soft == 0) (kept.size() < 30000 ? kept : blocks).push_back(hummock_malloc(200));
  for (int i = 0; i < 30000; ++i) blocks.push_back(hummock_malloc(200));
  std::sort(blocks.begin(), blocks.end());
  CHECK(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
  free_all(&blocks);
}

TEST_CASE("who goes over and under it with each call is told each ten milliseconds at most") {
  const Limits limits("20M", "none");
  CHECK(hummock_on_limit(handler) == 0);
  std::vector<void*> blocks;
  for (int i = 0; i < 15; ++i) blocks.push_back(hummock_malloc(kMiB));
  told_soft = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    hummock_free(hummock_malloc(10 * kMiB));
    hummock_free(hummock_malloc(300000));  // sees that it is under again
  }
  const auto passed = std::chrono::steady_clock::now() - began;
  CHECK(told_soft > 0);
  CHECK(told_soft <= 2 + passed / std::chrono::milliseconds(9));
  free_all(&blocks);
}

TEST_CASE("the soft limit holds what a bursty program keeps") {
  const Limits limits("64M", "none");
  std::vector<void*> blocks;
  size_t most = 0;
  unsigned seed = 1;
  for (int burst = 0; burst < 20; ++burst) {
    for (size_t bytes = 0; bytes < 56 * kMiB;) {
      seed = seed * 1103515245 + 12345;
      const size_t size = 100 + (seed >> 8) % (burst % 2 == 0 ? 3000u : 300000u);
      blocks.push_back(memset(hummock_malloc(size), 1, size));
      bytes += size;
      if (blocks.size() % 256 == 0) {
        const hummock_stats_t now = stats();
        most = std::max(most, now.committed + now.dirty);
      }
    }
    free_all(&blocks);
  }
  CHECK(most <= 64 * kMiB + 64 * kMiB / 10);
}

TEST_CASE("sizes and percentages") {
  char value[32];
  for (const char* good : {"80%", "1%", "100%", "512M", "none", "off"}) {
    CHECK(hummock_option_set("limit_soft", good) == 0);
    CHECK(hummock_option_get("limit_soft", value, sizeof value) == 0);
    CHECK(strcmp(value, strcmp(good, "off") == 0 ? "none" : good) == 0);
  }
  for (const char* bad : {"-80", "0%", "101%", "-5M", "%", "many"}) {
    INFO(bad);
    CHECK(hummock_option_set("limit_soft", bad) == EINVAL);
  }
  size_t limit = 0;
  int steps = 1;
  while (!hummock::os::group_limit(&limit) && steps < 1000) ++steps;
  CHECK(steps < 1000);
  CHECK(limit > 0);
  CHECK(limit <= uint64_t{1} << 50);
}
