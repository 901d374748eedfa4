// The proxy allocator at its limits: sizes and options that cannot be, foreign pointers, misuse.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/proxy.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "support/capture.h"
#include "support/proxy.h"
#include "support/support.h"

using support::Proxy;
using support::Witness;

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
  CHECK(proxy.allocate(10, SIZE_MAX / 2 + 1) == nullptr);
  CHECK(proxy.allocate(10, SIZE_MAX) == nullptr);
  CHECK(proxy.bucket_of(block) == 1);
  proxy.release(block);
  CHECK(witness.misuse.empty());
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
  const support::Ending ending = support::ending_of([] {
    Proxy proxy(4);
    void* block = proxy.allocate(16);
    proxy.release(block);
    proxy.release(block);
  });
  CHECK(ending.aborted);
  CHECK(support::contains(ending.said, "hummock"));
  CHECK(support::contains(ending.said, "freed before"));
  CHECK(ending.said.find('\n') == ending.said.size() - 1);
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
  for (uint64_t bytes :
       {uint64_t{SIZE_MAX}, uint64_t{SIZE_MAX / 4 * 3}, uint64_t{1} << 40, uint64_t{1} << 36}) {
    if (bytes > SIZE_MAX) continue;
    wrong = options;
    wrong.bucket_bytes = static_cast<size_t>(bytes);
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
