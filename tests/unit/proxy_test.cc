// The proxy allocator by its C names: every sentence of hummock/proxy.h.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/proxy.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

namespace {

struct Proxy {
  explicit Proxy(uint32_t buckets, size_t bytes = 1 << 20,
                 hummock_proxy_sizes_t sizes = HUMMOCK_PROXY_STEPS) {
    hummock_proxy_options_t options = {};
    options.size = sizeof options;
    options.bucket_count = buckets;
    options.bucket_bytes = bytes;
    options.sizes = sizes;
    make(options);
  }
  explicit Proxy(const hummock_proxy_options_t& options) { make(options); }
  ~Proxy() { hummock_proxy_destroy(handle); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  void make(const hummock_proxy_options_t& options) {
    handle = hummock_proxy_create(&options);
    REQUIRE(handle != nullptr);
  }
  void* allocate(size_t bytes, size_t align = 16) { return hummock_proxy_malloc(handle, bytes, align); }
  void release(void* p) { hummock_proxy_free(handle, p); }
  int32_t bucket_of(const void* p) { return hummock_proxy_bucket_of(handle, p); }
  uint32_t elements(size_t index) { return hummock_proxy_bucket_elements(handle, index); }
  int cache(hummock_proxy_warmup_t warmup, std::vector<uint32_t> most) {
    return hummock_proxy_thread_cache_create(handle, warmup, most.data(), most.size());
  }
  void end_cache() { hummock_proxy_thread_cache_destroy(handle); }

  hummock_proxy_t* handle;
};

// A fallback that says what it was asked, and misuse that is counted.
struct Witness {
  std::vector<std::string> calls;
  std::vector<void*> blocks;
  std::vector<std::string> misuse;
  size_t last_alignment = 0;
  size_t says_usable = 1;

  hummock_proxy_fallback_t fallback() {
    return {[](void* context, size_t bytes, size_t alignment) -> void* {
              auto* self = static_cast<Witness*>(context);
              self->calls.push_back("allocate " + std::to_string(bytes));
              self->last_alignment = alignment;
              void* block = nullptr;
              if (posix_memalign(&block, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
              return block;
            },
            [](void* context, void* block) {
              auto* self = static_cast<Witness*>(context);
              self->calls.push_back("release");
              self->blocks.push_back(block);
            },
            [](void* context, void* block, size_t bytes, size_t alignment) -> void* {
              auto* self = static_cast<Witness*>(context);
              self->calls.push_back("reallocate " + std::to_string(bytes));
              self->last_alignment = alignment;
              return realloc(block, bytes);
            },
            [](void* context, void*) -> size_t { return static_cast<Witness*>(context)->says_usable; }, this};
  }
  hummock_proxy_options_t options(const hummock_proxy_fallback_t* chosen, uint32_t buckets, size_t bytes) {
    hummock_proxy_options_t options = {};
    options.size = sizeof options;
    options.bucket_count = buckets;
    options.bucket_bytes = bytes;
    options.fallback = chosen;
    options.misuse = [](void* context, const char* what, const void*) {
      static_cast<Witness*>(context)->misuse.push_back(what);
    };
    options.misuse_context = this;
    return options;
  }
};

// Allocates all of one bucket; every block must be of it.
std::vector<void*> exhaust(Proxy& proxy, size_t bucket) {
  std::vector<void*> blocks;
  const size_t size = hummock_proxy_size_at(HUMMOCK_PROXY_STEPS, bucket);
  for (uint32_t i = 0; i < proxy.elements(bucket); ++i) {
    blocks.push_back(proxy.allocate(size));
    REQUIRE(proxy.bucket_of(blocks.back()) == static_cast<int32_t>(bucket));
  }
  return blocks;
}

size_t threads_of_test() {
  return HUMMOCK_TEST_EMULATED ? 2 : 4;
}

}  // namespace

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

TEST_CASE("size 0, NULL, and sizes that cannot be") {
  Witness witness;
  const auto fallback = witness.fallback();
  Proxy proxy(witness.options(&fallback, 4, 4096));
  for (size_t align : {0, 1, 4, 16, 64, 4096, 32768}) {
    void* none = proxy.allocate(0, align);
    CHECK(none != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(none) < 65536);
    if (align != 0) CHECK(support::is_aligned(none, align));
    CHECK(proxy.bucket_of(none) == -1);
    CHECK(hummock_proxy_usable_size(proxy.handle, none) == 0);
    proxy.release(none);
    void* some = hummock_proxy_realloc(proxy.handle, none, 10, 16);
    CHECK(proxy.bucket_of(some) == 0);
    CHECK(hummock_proxy_realloc(proxy.handle, some, 0, 16) == nullptr);
  }
  proxy.release(nullptr);
  CHECK(hummock_proxy_usable_size(proxy.handle, nullptr) == 0);
  CHECK(witness.calls.empty());
  void* strict = proxy.allocate(0, 1 << 20);
  CHECK(support::is_aligned(strict, 1 << 20));
  free(strict);
  void* block = proxy.allocate(20);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 16, SIZE_MAX - 4096, size_t{PTRDIFF_MAX} + 1}) {
    errno = 0;
    CHECK(proxy.allocate(bytes) == nullptr);
    CHECK(errno == ENOMEM);
    CHECK(hummock_proxy_realloc(proxy.handle, block, bytes, 16) == nullptr);
  }
  CHECK(proxy.allocate(10, size_t{1} << 63) == nullptr);
  CHECK(proxy.allocate(10, SIZE_MAX) == nullptr);
  CHECK(proxy.bucket_of(block) == 1);
  proxy.release(block);
  CHECK(witness.misuse.empty());
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

TEST_CASE("the fallback gets foreign pointers untouched") {
  Witness witness;
  const auto fallback = witness.fallback();
  Proxy proxy(witness.options(&fallback, 4, 4096));
  REQUIRE(proxy.cache(HUMMOCK_PROXY_HOT, {16, 16, 16, 16}) == 0);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* pages = static_cast<char*>(mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  // Nothing can be read before it, in it, or behind it.
  void* foreign = pages + page;
  proxy.release(foreign);
  CHECK(witness.blocks == std::vector<void*>{foreign});
  CHECK(proxy.bucket_of(foreign) == -1);
  witness.says_usable = 12345;
  CHECK(hummock_proxy_usable_size(proxy.handle, foreign) == 12345);
  munmap(pages, 3 * page);
  witness.says_usable = 10;  // too little to know that 20 bytes may be copied
  void* other = malloc(30);
  memset(other, 'x', 30);
  other = hummock_proxy_realloc(proxy.handle, other, 20, 16);
  CHECK(witness.calls.back() == "reallocate 20");
  free(other);
}

TEST_CASE("the default fallback knows what was asked for") {
  Proxy proxy(4, 4096);
  for (size_t bytes : {65, 100, 1000, 4095, 4096, 100001, 5000000}) {
    for (size_t align : {1, 16, 64, 4096, 65536}) {
      void* block = proxy.allocate(bytes, align);
      REQUIRE(block != nullptr);
      CHECK(support::is_aligned(block, align));
      memset(block, 0xff, bytes);
      CHECK(hummock_proxy_usable_size(proxy.handle, block) == bytes);
      block = hummock_proxy_realloc(proxy.handle, block, bytes * 2, align);
      CHECK(hummock_proxy_usable_size(proxy.handle, block) == bytes * 2);
      CHECK(support::is_aligned(block, align));
      proxy.release(block);
    }
  }
  void* foreign = malloc(1000);
  memset(foreign, 0, 1000);
  CHECK(hummock_proxy_usable_size(proxy.handle, foreign) >= 1000);
  proxy.release(foreign);
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

TEST_CASE("misuse is reported, and no block is handed out twice") {
  for (auto sizes : {HUMMOCK_PROXY_STEPS, HUMMOCK_PROXY_FLOAT}) {
    for (uint32_t cached : {0u, 8u}) {
      Witness witness;
      const auto fallback = witness.fallback();
      auto options = witness.options(&fallback, 8, 4096);
      options.sizes = sizes;
      Proxy proxy(options);
      if (cached != 0) REQUIRE(proxy.cache(HUMMOCK_PROXY_COLD, std::vector<uint32_t>(8, cached)) == 0);
      char* block = static_cast<char*>(proxy.allocate(16));
      char* other = static_cast<char*>(proxy.allocate(24, 4));
      proxy.release(block);
      proxy.release(block);
      CHECK(witness.misuse.size() == 1);
      std::thread([&] { proxy.release(block); }).join();
      CHECK(witness.misuse.size() == 2);
      void* first = proxy.allocate(16);
      void* second = proxy.allocate(16);
      CHECK(first != second);
      for (int at : {1, 4, 8, 15, 16}) {
        proxy.release(other + at);
        CHECK(hummock_proxy_realloc(proxy.handle, other + at, 100, 16) == nullptr);
      }
      proxy.release(static_cast<char*>(nullptr) + 8);  // below all memory: nothing
      CHECK(witness.misuse.size() == 12);
      proxy.release(other);
      CHECK(witness.misuse.size() == 12);
      CHECK(witness.calls.empty());
    }
  }
}

TEST_CASE("without a hook misuse ends the process with one line") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    Proxy proxy(4);
    void* block = proxy.allocate(16);
    proxy.release(block);
    signal(SIGABRT, SIG_DFL);
    proxy.release(block);
    _exit(0);
  }
  close(ends[1]);
  char text[600] = {};
  const ssize_t length = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  REQUIRE(length > 0);
  CHECK(strstr(text, "hummock") != nullptr);
  CHECK(strstr(text, "freed before") != nullptr);
  CHECK(strchr(text, '\n') == text + length - 1);
}

TEST_CASE("bad options, and no room") {
  hummock_proxy_options_t options = {};
  options.size = sizeof options;
  options.bucket_count = 4;
  options.bucket_bytes = 4096;
  const auto error_of = [](const hummock_proxy_options_t* given) {
    errno = 0;
    CHECK(hummock_proxy_create(given) == nullptr);
    return errno;
  };
  CHECK(error_of(nullptr) == EINVAL);
  auto wrong = options;
  wrong.size = 3;
  CHECK(error_of(&wrong) == EINVAL);
  wrong = options;
  wrong.sizes = static_cast<hummock_proxy_sizes_t>(7);
  CHECK(error_of(&wrong) == EINVAL);
  wrong = options;
  hummock_proxy_fallback_t half = Witness().fallback();
  half.usable_size = nullptr;
  wrong.fallback = &half;
  CHECK(error_of(&wrong) == EINVAL);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 40, size_t{1} << 36}) {
    wrong = options;
    wrong.bucket_bytes = bytes;
    CHECK(error_of(&wrong) == ENOMEM);
  }
  hummock_proxy_destroy(nullptr);

  Proxy proxy(4);
  CHECK(hummock_proxy_thread_cache_create(proxy.handle, HUMMOCK_PROXY_HOT, nullptr, 2) == EINVAL);
  CHECK(hummock_proxy_thread_cache_create(proxy.handle, static_cast<hummock_proxy_warmup_t>(3), nullptr, 0) ==
        EINVAL);
  CHECK(hummock_proxy_thread_cache_create(proxy.handle, HUMMOCK_PROXY_HOT, nullptr, 0) == 0);
}

TEST_CASE("no buckets, no bytes, elements larger than the pool") {
  for (auto [buckets, bytes] :
       {std::pair<uint32_t, size_t>{0, 0}, {0, 1 << 20}, {4, 0}, {62, 4096}, {1000, 4096}}) {
    Witness witness;
    const auto fallback = witness.fallback();
    Proxy proxy(witness.options(&fallback, buckets, bytes));
    CHECK(hummock_proxy_bucket_count(proxy.handle) == std::min(buckets, 62u));
    CHECK(proxy.elements(61) == 0);
    REQUIRE(proxy.cache(HUMMOCK_PROXY_HOT, std::vector<uint32_t>(62, 100)) == 0);
    void* block = proxy.allocate(25088);
    CHECK(proxy.bucket_of(block) == -1);
    CHECK(witness.calls.size() == 1);
    proxy.release(block);
    proxy.release(block);  // the fallback's own affair
    CHECK(witness.blocks.size() == 2);
    free(block);
    void* small = proxy.allocate(10);
    CHECK((proxy.bucket_of(small) >= 0) == (buckets != 0 && bytes != 0));
    if (proxy.bucket_of(small) < 0) free(small);
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

#if !HUMMOCK_TEST_SANITIZED
size_t resident() {
  return support::figures().resident;
}

TEST_CASE("memory is reserved at creation, touched when used") {
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
