// Hooks: what a tool is told of is what lives.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/mman.h>

#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/support.h"

namespace {

// What it was told. Its own memory comes from libc here, and, to try that it may, from Hummock.
struct Tool {
  std::mutex lock;
  std::map<void*, size_t> live;
  size_t allocated = 0, resized = 0, released = 0, unknown = 0;
};
Tool* tool;

void allocated(void* context, void* block, size_t size) {
  auto* to = static_cast<Tool*>(context);
  hummock_free(hummock_malloc(24));  // is not told of
  const std::lock_guard guard(to->lock);
  ++to->allocated;
  CHECK(to->live.emplace(block, size).second);
}

void resized(void* context, void* block, size_t size, void* before) {
  auto* to = static_cast<Tool*>(context);
  const std::lock_guard guard(to->lock);
  ++to->resized;
  CHECK(block == before);
  to->unknown += to->live.erase(before) == 0;
  to->live[block] = size;
}

void released(void* context, void* block) {
  auto* to = static_cast<Tool*>(context);
  hummock_free(hummock_malloc(24));
  const std::lock_guard guard(to->lock);
  ++to->released;
  to->unknown += to->live.erase(block) == 0;
}

const hummock_hooks_t kHooks = {sizeof kHooks, nullptr, allocated, resized, released, nullptr};

// Hooks must stay for ever, and their context too.
std::deque<hummock_hooks_t> kept;
std::deque<Tool> tools;

hummock_hooks_t* new_hooks() {
  return &kept.emplace_back(kHooks);
}

const hummock_hooks_t* hooks_of_new_tool() {
  tool = &tools.emplace_back();
  hummock_hooks_t* hooks = new_hooks();
  hooks->context = tool;
  return hooks;
}

void* some_block(std::mt19937& random, size_t size) {
  switch (random() % 6) {
    case 0:
      return hummock_calloc(1, size);
    case 1:
      return hummock_aligned_alloc(size_t{16} << random() % 10, size);
    default:
      return hummock_malloc(size);
  }
}

size_t some_size(std::mt19937& random) {
  return 1 + random() % (random() % 50 == 0 ? 300000 : random() % 5 == 0 ? 20000 : 500);
}

using Live = std::map<void*, size_t>;

void churn(unsigned seed, Live* live) {
  std::mt19937 random(seed);
  std::vector<void*> list;
  for (int i = 0; i < 6000; ++i) {
    const size_t size = some_size(random);
    const unsigned what = list.empty() ? 0 : random() % 5;
    if (what < 2) {
      list.push_back(some_block(random, size));
      (*live)[list.back()] = size;
      continue;
    }
    void*& block = list[random() % list.size()];
    live->erase(block);
    if (what == 2) {
      block = hummock_realloc(block, size);
      (*live)[block] = size;
      continue;
    }
    what == 3 ? hummock_free(block) : hummock_free_sized(block, hummock_usable_size(block));
    block = list.back();
    list.pop_back();
  }
}

}  // namespace

TEST_CASE("each block that comes and goes is told of, in every thread") {
  REQUIRE(hummock_set_hooks(hooks_of_new_tool()) == 0);
  Live live[4];
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(churn, support::run_seed() + i, &live[i]);
  for (std::thread& each : threads) each.join();
  Live all;
  for (const Live& each : live) all.insert(each.begin(), each.end());
  CHECK(tool->live == all);
  CHECK(tool->unknown == 0);
  CHECK(tool->allocated - tool->released == all.size());
  CHECK(tool->resized > 0);
  for (const auto& [block, size] : all) hummock_free(block);  // from another thread
  CHECK(tool->live.empty());
  REQUIRE(hummock_set_hooks(nullptr) == 0);
  const size_t told = tool->allocated + tool->released;
  Live after;
  churn(7, &after);
  for (const auto& [block, size] : after) hummock_free(block);
  CHECK(tool->allocated + tool->released == told);
}

TEST_CASE("a large block that moves is told of as a new one, and then the old one") {
  REQUIRE(hummock_set_hooks(hooks_of_new_tool()) == 0);
  constexpr size_t kSize = size_t{33} << 20;
  void* blocks[3];
  size_t moved = 0;
  for (void*& block : blocks) {
    block = hummock_malloc(kSize);
    // So that it cannot grow where it is. If the place is taken already, that does as well.
    mmap(static_cast<char*>(block) + kSize, 4096, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    void* grown = hummock_realloc(block, 2 * kSize);
    REQUIRE(grown != nullptr);
    moved += grown != block;
    block = grown;
  }
  CHECK(moved > 0);
  CHECK(tool->allocated == 3 + moved);
  CHECK(tool->released == moved);
  CHECK(tool->resized == 3 - moved);
  for (void* block : blocks) hummock_free(block);
  CHECK(tool->live.empty());
  REQUIRE(hummock_set_hooks(nullptr) == 0);
}

TEST_CASE(
    "a thread that has slabs already is told of from its next allocation on, and is quick again after") {
  std::vector<void*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(hummock_malloc(96));
  REQUIRE(hummock_set_hooks(hooks_of_new_tool()) == 0);
  hummock_free(hummock_malloc(10));
  CHECK(tool->allocated == 1);
  for (void* block : blocks) hummock_free(block);
  CHECK(tool->released == blocks.size() + 1);
  CHECK(tool->unknown == blocks.size());
  REQUIRE(hummock_set_hooks(nullptr) == 0);
  for (int i = 0; i < 1000; ++i) hummock_free(hummock_malloc(96));
  CHECK(tool->released == blocks.size() + 1);
}

std::string order;

TEST_CASE("a limit's handler comes after the tool was told of the resize") {
  static const hummock_hooks_t hooks = {
      sizeof hooks, nullptr, nullptr, [](void*, void*, size_t, void*) { order += 'r'; }, nullptr, nullptr};
  constexpr size_t kSize = size_t{40} << 20;
  void* block = hummock_malloc(kSize);
  REQUIRE(block != nullptr);
  REQUIRE(hummock_set_hooks(&hooks) == 0);
  REQUIRE(hummock_on_limit([](int, size_t, size_t) { order += 'l'; }) == 0);
  REQUIRE(hummock_option_set("limit_soft", "60M") == 0);
  void* grown = hummock_realloc(block, 3 * kSize);
  REQUIRE(grown != nullptr);
  CHECK(order == (grown == block ? "rl" : "l"));
  hummock_option_set("limit_soft", "none");
  hummock_on_limit(nullptr);
  REQUIRE(hummock_set_hooks(nullptr) == 0);
  hummock_free(grown);
  hummock_trim(0);
}

TEST_CASE("heaps are told of, and hooks come and go while threads run") {
  const hummock_hooks_t* hooks = hooks_of_new_tool();
  REQUIRE(hummock_set_hooks(hooks) == 0);
  hummock_heap_t* heap = hummock_heap_create();
  void* one = hummock_heap_malloc(heap, 100);
  void* two = hummock_heap_calloc(heap, 10, 10);
  one = hummock_heap_realloc(heap, one, 5000);
  CHECK(tool->live == Live{{one, 5000}, {two, 100}});
  hummock_heap_free(heap, one);
  hummock_free(two);
  CHECK(tool->live.empty());
  CHECK(tool->unknown == 0);
  hummock_heap_destroy(heap);
  tool->live.clear();
  // Nothing can be said of what is seen now but that nothing breaks.
  hummock_hooks_t* quiet = new_hooks();
  quiet->allocated = [](void*, void*, size_t) {};
  quiet->resized = nullptr;
  quiet->released = [](void*, void*) {};
  Live live[3];
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back(churn, support::run_seed() + i, &live[i]);
  for (int i = 0; i < 200; ++i) {
    CHECK(hummock_set_hooks(i % 2 == 0 ? quiet : nullptr) == 0);
    std::this_thread::yield();
  }
  for (std::thread& each : threads) each.join();
  CHECK(hummock_set_hooks(nullptr) == 0);
  for (const Live& each : live) {
    for (const auto& [block, size] : each) hummock_free(block);
  }
}

TEST_CASE("address space that comes is told of; wrong hooks are refused") {
  static size_t bytes;
  hummock_hooks_t* hooks = new_hooks();
  *hooks = {sizeof *hooks, nullptr, nullptr, nullptr, nullptr, nullptr};
  hooks->mapped = [](void*, const char* what, const void*, size_t size) {
    if (strncmp(what, "Alloc", 5) == 0) bytes += size;
  };
  CHECK(hummock_set_hooks(hooks) == 0);
  hummock_free(hummock_malloc(size_t{100} << 20));
  CHECK(bytes >= size_t{100} << 20);
  CHECK(hummock_set_hooks(nullptr) == 0);
  hooks->size = 8;
  CHECK(hummock_set_hooks(hooks) == EINVAL);
}
