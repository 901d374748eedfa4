// The proxy allocator in several threads, and several proxies in one.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/proxy.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "support/proxy.h"
#include "support/support.h"

using support::exhaust;
using support::Proxy;

namespace {

size_t threads_of_test() {
  return HUMMOCK_TEST_EMULATED ? 2 : 4;
}

}  // namespace

TEST_CASE("a warm cache keeps its elements from other threads until it ends") {
  for (auto [warmup, kept] :
       {std::pair{HUMMOCK_PROXY_COLD, 0}, {HUMMOCK_PROXY_WARM, 50}, {HUMMOCK_PROXY_HOT, 100}}) {
    Proxy proxy(1, 4096);
    REQUIRE(proxy.cache(warmup, {100}) == 0);
    std::thread([&] {
      std::vector<void*> blocks;
      int pooled = 0;
      for (int i = 0; i < 256; ++i) {
        blocks.push_back(proxy.allocate(16));
        pooled += proxy.bucket_of(blocks.back()) == 0;
      }
      CHECK(pooled == 256 - kept);
      for (void* block : blocks) proxy.release(block);
    }).join();
    proxy.end_cache();
    proxy.end_cache();  // there is none: nothing happens
    for (void* block : exhaust(proxy, 0)) proxy.release(block);
  }
}

TEST_CASE("each proxy has its own caches") {
  Proxy first(4), second(4);
  REQUIRE(first.cache(HUMMOCK_PROXY_HOT, {64, 64, 64, 64}) == 0);
  REQUIRE(second.cache(HUMMOCK_PROXY_HOT, {64, 64, 64, 64}) == 0);
  std::set<void*> seen;
  for (int i = 0; i < 2000; ++i) {
    Proxy& one = i % 2 == 0 ? first : second;
    Proxy& other = i % 2 == 0 ? second : first;
    void* block = one.allocate(16 + static_cast<size_t>(i) % 48);
    CHECK(one.bucket_of(block) >= 0);
    CHECK(other.bucket_of(block) == -1);
    CHECK(seen.insert(block).second);
    if (i % 3 == 0) {
      one.release(block);
      seen.erase(block);
    }
  }
}

TEST_CASE("a place in the threads' tables is used again, and a stale cache is never found there") {
  std::thread([] {
    for (int i = 0; i < 100; ++i) {
      Proxy proxy(2, 4096);
      REQUIRE(proxy.cache(HUMMOCK_PROXY_HOT, {100, 100}) == 0);
      // The proxy ends with the cache; another takes its place, with no cache of this thread.
    }
    Proxy proxy(2, 4096);
    CHECK(exhaust(proxy, 0).size() == 256);
  }).join();
}

TEST_CASE("more proxies than threads have places for") {
  std::vector<Proxy*> proxies;
  int with_cache = 0;
  for (int i = 0; i < 1100; ++i) {
    proxies.push_back(new Proxy(1, 4096));
    const int error = proxies.back()->cache(HUMMOCK_PROXY_COLD, {4});
    CHECK((error == 0 || error == EAGAIN));
    with_cache += error == 0;
    void* block = proxies.back()->allocate(10);
    CHECK(proxies.back()->bucket_of(block) == 0);
    proxies.back()->release(block);
  }
  CHECK(with_cache >= 1000);
  for (Proxy* proxy : proxies) delete proxy;
}

TEST_CASE("a thread that ends gives its cache back") {
  Proxy proxy(4, 64 << 10);
  for (int round = 0; round < 20; ++round) {
    std::thread([&] {
      REQUIRE(proxy.cache(HUMMOCK_PROXY_HOT, {1000, 1000, 1000, 1000}) == 0);
      std::vector<void*> blocks;
      for (int i = 0; i < 700; ++i) blocks.push_back(proxy.allocate(1 + static_cast<size_t>(i) % 64));
      for (void* block : blocks) proxy.release(block);
    }).join();
    for (size_t bucket = 0; bucket < 4; ++bucket) {
      for (void* block : exhaust(proxy, bucket)) proxy.release(block);
    }
  }
}

TEST_CASE("a block may be freed by another thread") {
  Proxy proxy(4, 64 << 10);
  for (int round = 0; round < 10; ++round) {
    const auto blocks = exhaust(proxy, 2);
    std::thread([&] {
      if (round % 2 == 0) REQUIRE(proxy.cache(HUMMOCK_PROXY_COLD, {32, 32, 32, 32}) == 0);
      for (void* block : blocks) proxy.release(block);
    }).join();
  }
  CHECK(exhaust(proxy, 2).size() == proxy.elements(2));
}

TEST_CASE("many threads, cached and not, over one proxy") {
  Proxy proxy(16, 256 << 10);
  const int rounds = static_cast<int>(support::scaled(20000));
  std::vector<std::thread> crew;
  for (size_t t = 0; t < threads_of_test(); ++t) {
    crew.emplace_back([&, t] {
      if (t % 2 == 0) REQUIRE(proxy.cache(HUMMOCK_PROXY_WARM, std::vector<uint32_t>(16, 50)) == 0);
      support::Random random(support::run_seed() + t);
      struct Live {
        void* block;
        size_t size;
        uint64_t tag;
      };
      std::vector<Live> live;
      for (int i = 0; i < rounds; ++i) {
        if (live.size() >= 200 || (!live.empty() && random.one_in(2))) {
          Live& victim = live[random.below(live.size())];
          if (!support::intact(victim.block, victim.tag, victim.size))
            FAIL("a block was written to by another");
          proxy.release(victim.block);
          victim = live.back();
          live.pop_back();
        } else {
          const Live one = {nullptr, 1 + random.below(1200), random.next()};
          live.push_back(one);
          live.back().block = proxy.allocate(one.size);
          support::fill(live.back().block, one.tag, one.size);
        }
      }
      for (const Live& each : live) proxy.release(each.block);
    });
  }
  for (auto& thread : crew) thread.join();
  for (size_t bucket = 0; bucket < 16; ++bucket) {
    for (void* block : exhaust(proxy, bucket)) proxy.release(block);
  }
}

TEST_CASE("blocks pass from thread to thread and are freed where they arrive") {
  Proxy proxy(8, 128 << 10);
  constexpr size_t kPlaces = 300;
  std::vector<std::atomic<unsigned char*>> places(kPlaces);
  std::vector<std::thread> crew;
  for (size_t t = 0; t < threads_of_test(); ++t) {
    crew.emplace_back([&, t] {
      if (t != 0)
        REQUIRE(proxy.cache(HUMMOCK_PROXY_COLD, std::vector<uint32_t>(8, static_cast<uint32_t>(8 * t))) == 0);
      support::Random random(support::run_seed() + t);
      for (size_t i = 0; i < support::scaled(40000, 2000); ++i) {
        const size_t size = 1 + random.below(128);
        auto* block = static_cast<unsigned char*>(proxy.allocate(size));
        memset(block, static_cast<int>(size), size);
        // acquire and release: what was written passes with the block.
        block = places[random.below(kPlaces)].exchange(block, std::memory_order_acq_rel);
        if (block == nullptr) continue;
        if (std::count(block, block + block[0], block[0]) != block[0])
          FAIL("a block was written to by another");
        proxy.release(block);
      }
    });
  }
  for (auto& thread : crew) thread.join();
  for (auto& place : places) proxy.release(place.load());
  for (size_t bucket = 0; bucket < 8; ++bucket) {
    for (void* block : exhaust(proxy, bucket)) proxy.release(block);
  }
}

TEST_CASE("capacity is exact when threads without caches race for the last elements") {
  for (int round = 0; round < 20; ++round) {
    Proxy proxy(1, 16 << 10);
    std::vector<std::vector<void*>> taken(threads_of_test());
    const size_t each = proxy.elements(0) / taken.size();
    std::vector<std::thread> crew;
    for (auto& mine : taken) {
      crew.emplace_back([&] {
        for (size_t i = 0; i < each; ++i) {
          mine.push_back(proxy.allocate(16));
          if (i % 3 == 0) {
            proxy.release(mine.back());
            mine.back() = proxy.allocate(16);
          }
        }
      });
    }
    for (auto& thread : crew) thread.join();
    std::set<void*> all;
    for (const auto& mine : taken) {
      for (void* block : mine) {
        CHECK(proxy.bucket_of(block) == 0);
        all.insert(block);
      }
    }
    CHECK(all.size() == each * taken.size());
  }
}

TEST_CASE("the child of a fork goes on") {
  Proxy proxy(4);
  REQUIRE(proxy.cache(HUMMOCK_PROXY_WARM, {100, 100, 100, 100}) == 0);
  bool stop = false;
  std::thread other([&] {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
      proxy.cache(HUMMOCK_PROXY_HOT, {50});
      proxy.release(proxy.allocate(10));
      proxy.end_cache();
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int j = 0; j < 100; ++j) proxy.release(proxy.allocate(20));
      proxy.end_cache();
      _exit(proxy.cache(HUMMOCK_PROXY_HOT, {10, 10}) == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  other.join();
}
