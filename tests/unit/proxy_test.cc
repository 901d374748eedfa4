// The proxy allocator by its C names: sizes, capacity, overflow, alignment, realloc, statistics.
#include <doctest/doctest.h>
#include <hummock/proxy.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/figures.h"
#include "support/proxy.h"
#include "support/support.h"

using support::exhaust;
using support::Proxy;
using support::Witness;

TEST_CASE("sizes of the elements") {
  const struct {
    hummock_proxy_sizes_t sizes;
    std::vector<size_t> first;
    size_t last;
  } schemes[] = {
      {HUMMOCK_PROXY_STEPS,
       {16, 32, 48, 64, 80, 96, 112, 128, 256, 384, 512, 640, 768, 896, 1024, 1536},
       25088},
      {HUMMOCK_PROXY_LINEAR, {16, 32, 48, 64}, 992},
      {HUMMOCK_PROXY_FLOAT, {16, 20, 24, 28, 32, 40, 48, 56, 64, 80}, 655360},
  };
  for (const auto& scheme : schemes) {
    for (size_t i = 0; i < scheme.first.size(); ++i) {
      CHECK(hummock_proxy_size_at(scheme.sizes, i) == scheme.first[i]);
    }
    CHECK(hummock_proxy_size_at(scheme.sizes, 61) == scheme.last);
    size_t index = 0;
    for (size_t bytes = 0; bytes <= scheme.last; ++bytes) {
      if (bytes > hummock_proxy_size_at(scheme.sizes, index)) ++index;
      if (hummock_proxy_index_for(scheme.sizes, bytes) != index) FAIL(bytes);
    }
    CHECK(hummock_proxy_index_for(scheme.sizes, scheme.last + 1) == 62);
    CHECK(hummock_proxy_index_for(scheme.sizes, SIZE_MAX) > 62);
  }
}

TEST_CASE("every element can be had, and again after all are free") {
  Proxy proxy(16, 100000);
  CHECK(hummock_proxy_bucket_count(proxy.handle) == 16);
  for (size_t bucket = 0; bucket < 16; ++bucket) {
    CHECK(proxy.elements(bucket) == 102400 / hummock_proxy_size_at(HUMMOCK_PROXY_STEPS, bucket));
  }
  CHECK(proxy.elements(16) == 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> all;
    for (size_t bucket = 0; bucket < 16; ++bucket) {
      const auto blocks = exhaust(proxy, bucket);
      for (void* block : blocks) memset(block, 0xa5, hummock_proxy_size_at(HUMMOCK_PROXY_STEPS, bucket));
      all.insert(all.end(), blocks.begin(), blocks.end());
    }
    CHECK(std::set<void*>(all.begin(), all.end()).size() == all.size());
    void* beyond = proxy.allocate(10);
    CHECK(proxy.bucket_of(beyond) == -1);
    proxy.release(beyond);
    if (round == 1) std::reverse(all.begin(), all.end());
    for (void* block : all) proxy.release(block);
  }
}

TEST_CASE("capacity is exact with caches, too, for each warm-up") {
  for (auto warmup : {HUMMOCK_PROXY_COLD, HUMMOCK_PROXY_WARM, HUMMOCK_PROXY_HOT}) {
    for (uint32_t most : {1u, 2u, 63u, 64u, 65u, 1000u, 1u << 30}) {
      Proxy proxy(5, 64 << 10);
      REQUIRE(proxy.cache(warmup, {most, most, 0, most, most, most, most}) == 0);
      for (int round = 0; round < 2; ++round) {
        std::vector<void*> all;
        for (size_t bucket = 0; bucket < 5; ++bucket) {
          const auto blocks = exhaust(proxy, bucket);
          all.insert(all.end(), blocks.begin(), blocks.end());
        }
        CHECK(std::set<void*>(all.begin(), all.end()).size() == all.size());
        for (void* block : all) proxy.release(block);
      }
      proxy.end_cache();
      std::thread([&] { CHECK(exhaust(proxy, 1).size() == 2048); }).join();
    }
  }
}

TEST_CASE("a full bucket overflows into three larger ones, then to the fallback") {
  Witness witness;
  const auto fallback = witness.fallback();
  Proxy proxy(witness.options(&fallback, 8, 4096));
  std::vector<int32_t> order;
  size_t total = 0;
  for (size_t bucket = 0; bucket < 4; ++bucket) total += proxy.elements(bucket);
  for (size_t i = 0; i < total; ++i) {
    void* block = proxy.allocate(16);
    const int32_t bucket = proxy.bucket_of(block);
    CHECK(hummock_proxy_usable_size(proxy.handle, block) == 16 * static_cast<size_t>(bucket + 1));
    if (order.empty() || order.back() != bucket) order.push_back(bucket);
  }
  CHECK(order == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(witness.calls.empty());
  void* block = proxy.allocate(16);
  CHECK(witness.calls == std::vector<std::string>{"allocate 16"});
  CHECK(proxy.bucket_of(proxy.allocate(80)) == 4);  // is not touched
  free(block);
}

TEST_CASE("only buckets that suit the alignment are used") {
  Witness witness;
  const auto fallback = witness.fallback();
  Proxy proxy(witness.options(&fallback, 62, 64 << 10));
  for (size_t align = 1; align <= 4096; align *= 2) {
    for (size_t bytes : {1, 16, 17, 33, 100, 129, 1000, 4000}) {
      void* block = proxy.allocate(bytes, align);
      CHECK(support::is_aligned(block, align));
      const int32_t bucket = proxy.bucket_of(block);
      if (bucket >= 0)
        CHECK(hummock_proxy_size_at(HUMMOCK_PROXY_STEPS, static_cast<size_t>(bucket)) % align == 0);
      proxy.release(block);
    }
  }
  CHECK(witness.calls.empty());
  CHECK(proxy.bucket_of(proxy.allocate(33, 32)) == 3);
  CHECK(proxy.bucket_of(proxy.allocate(33, 24)) == 3);  // counts as 32
  CHECK(proxy.bucket_of(proxy.allocate(33, 0)) == 2);
  for (size_t align : {size_t{8192}, size_t{1} << 20}) {
    void* block = proxy.allocate(24, align);
    CHECK(witness.last_alignment == align);
    CHECK(support::is_aligned(block, align));
    free(block);
  }
  CHECK(witness.calls.size() == 2);
}

TEST_CASE("realloc keeps contents and alignment, and gives memory back") {
  for (bool cached : {false, true}) {
    Proxy proxy(62, 1 << 20);
    if (cached) REQUIRE(proxy.cache(HUMMOCK_PROXY_WARM, std::vector<uint32_t>(62, 32)) == 0);
    support::Random random(support::run_seed());
    for (int i = 0; i < 3000; ++i) {
      const size_t old_size = 1 + random.below(40000), new_size = 1 + random.below(40000);
      const size_t align = size_t{1} << random.below(14);
      void* block = proxy.allocate(old_size, size_t{1} << random.below(8));
      support::fill(block, 7, old_size);
      void* moved = hummock_proxy_realloc(proxy.handle, block, new_size, align);
      REQUIRE(moved != nullptr);
      CHECK(support::is_aligned(moved, align));
      CHECK(support::intact(moved, 7, old_size, std::min(old_size, new_size)));
      CHECK(hummock_proxy_usable_size(proxy.handle, moved) >= new_size);
      proxy.release(moved);
    }
  }
  Proxy proxy(62, 1 << 20);
  void* block = proxy.allocate(25000);
  CHECK(proxy.bucket_of(block) == 61);
  block = hummock_proxy_realloc(proxy.handle, block, 20, 16);
  CHECK(proxy.bucket_of(block) == 1);
  CHECK(hummock_proxy_realloc(proxy.handle, block, 32, 16) == block);
  block = hummock_proxy_realloc(proxy.handle, block, 100000, 16);
  CHECK(proxy.bucket_of(block) == -1);
  CHECK(hummock_proxy_usable_size(proxy.handle, block) == 100000);
  block = hummock_proxy_realloc(proxy.handle, block, 30, 16);  // from the fallback into a pool
  CHECK(proxy.bucket_of(block) == 1);
  // A block that suits by its size but not by its place moves.
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(proxy.allocate(48, 16));
  for (void*& each : blocks) {
    each = hummock_proxy_realloc(proxy.handle, each, 48, 64);
    CHECK(support::is_aligned(each, 64));
  }
}

TEST_CASE("where a pointer points") {
  for (auto sizes : {HUMMOCK_PROXY_STEPS, HUMMOCK_PROXY_LINEAR, HUMMOCK_PROXY_FLOAT}) {
    Proxy proxy(12, 40960, sizes);
    for (size_t bucket = 0; bucket < 12; ++bucket) {
      const size_t size = hummock_proxy_size_at(sizes, bucket);
      char* block = static_cast<char*>(proxy.allocate(size, 4));
      for (size_t at = 0; at < size; ++at) CHECK(proxy.bucket_of(block + at) == static_cast<int32_t>(bucket));
    }
    int local = 0;
    CHECK(proxy.bucket_of(&local) == -1);
    CHECK(proxy.bucket_of(nullptr) == -1);
    CHECK(proxy.bucket_of(reinterpret_cast<void*>(~uintptr_t{0})) == -1);
  }
}

TEST_CASE("elements that are no multiple of 16") {
  Proxy proxy(62, 1 << 20, HUMMOCK_PROXY_FLOAT);
  REQUIRE(proxy.cache(HUMMOCK_PROXY_WARM, std::vector<uint32_t>(62, 100)) == 0);
  support::Random random(support::run_seed());
  std::vector<std::pair<void*, size_t>> live;
  for (int i = 0; i < 30000; ++i) {
    if (live.size() > 500 || (!live.empty() && random.one_in(3))) {
      auto& victim = live[random.below(live.size())];
      CHECK(support::intact(victim.first, 3, victim.second));
      proxy.release(victim.first);
      victim = live.back();
      live.pop_back();
    } else {
      const size_t bytes = 1 + random.below(300), align = size_t{1} << random.below(5);
      live.emplace_back(proxy.allocate(bytes, align), bytes);
      CHECK(support::is_aligned(live.back().first, align));
      support::fill(live.back().first, 3, bytes);
    }
  }
}

TEST_CASE("statistics") {
  hummock_proxy_options_t options = {};
  options.size = sizeof options;
  options.bucket_count = 4;
  options.bucket_bytes = 4096;
  options.count_calls = 1;
  Proxy proxy(options);
  hummock_proxy_stats_t stats;
  hummock_proxy_bucket_stats_t bucket;
  void* blocks[] = {proxy.allocate(16), proxy.allocate(40), proxy.allocate(1000), proxy.allocate(10, 8192)};
  proxy.allocate(0);
  REQUIRE(proxy.cache(HUMMOCK_PROXY_WARM, {8}) == 0);
  proxy.release(proxy.allocate(5));
  for (void* block : blocks) proxy.release(block);
  REQUIRE(hummock_proxy_stats(proxy.handle, &stats) == 0);
  CHECK(stats.attempts == 5);
  CHECK(stats.served == 3);
  CHECK(stats.fallback == 2);
  CHECK(stats.by_size == 2);
  CHECK(stats.by_saturation == 0);
  REQUIRE(hummock_proxy_bucket_stats(proxy.handle, 0, &bucket) == 0);
  CHECK(bucket.hits == 1);
  CHECK(bucket.cache_hits == 1);
  CHECK(bucket.misses == 0);
  CHECK(bucket.frees == 2);
  for (int i = 0; i < 64; ++i) proxy.allocate(64);
  void* beyond = proxy.allocate(64);
  REQUIRE(hummock_proxy_stats(proxy.handle, &stats) == 0);
  CHECK(stats.by_saturation == 1);
  REQUIRE(hummock_proxy_bucket_stats(proxy.handle, 3, &bucket) == 0);
  CHECK(bucket.hits == 64);
  CHECK(bucket.misses == 1);
  proxy.release(beyond);
  CHECK(hummock_proxy_bucket_stats(proxy.handle, 4, &bucket) == EINVAL);
  Proxy silent(4);
  CHECK(hummock_proxy_stats(silent.handle, &stats) == EINVAL);
  CHECK(hummock_proxy_bucket_stats(silent.handle, 0, &bucket) == EINVAL);
}

#if !HUMMOCK_TEST_SANITIZED && !HUMMOCK_TEST_EMULATED  // an emulator's own memory counts, too
size_t resident() {
  return support::figures().resident;
}

TEST_CASE("memory is reserved at creation, touched when used") {
  if (sizeof(void*) < 8) return;  // more than there are addresses
  const size_t before = resident();
  std::vector<Proxy*> proxies;
  for (int i = 0; i < 10; ++i) proxies.push_back(new Proxy(10, 64 << 20));
  for (Proxy* proxy : proxies) {
    REQUIRE(proxy->cache(HUMMOCK_PROXY_HOT, std::vector<uint32_t>(10, 131072)) == 0);
    proxy->end_cache();
  }
  CHECK(resident() - before < (4 << 20));
  std::vector<void*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(proxies[0]->allocate(64));
  CHECK(resident() - before < (4 << 20));
  for (Proxy* proxy : proxies) delete proxy;
}
#endif
