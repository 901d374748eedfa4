// What the tests of the proxy share.
#ifndef HUMMOCK_TESTS_PROXY_SUPPORT_H
#define HUMMOCK_TESTS_PROXY_SUPPORT_H

#include <doctest/doctest.h>
#include <hummock/proxy.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace support {

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
inline std::vector<void*> exhaust(Proxy& proxy, size_t bucket) {
  std::vector<void*> blocks;
  const size_t size = hummock_proxy_size_at(HUMMOCK_PROXY_STEPS, bucket);
  for (uint32_t i = 0; i < proxy.elements(bucket); ++i) {
    blocks.push_back(proxy.allocate(size));
    REQUIRE(proxy.bucket_of(blocks.back()) == static_cast<int32_t>(bucket));
  }
  return blocks;
}

}  // namespace support

#endif  // HUMMOCK_TESTS_PROXY_SUPPORT_H
