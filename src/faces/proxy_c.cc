// hummock_proxy_*.
#include <errno.h>

#include "proxy/proxy.h"

using namespace hummock;

namespace {

proxy::Proxy* of(hummock_proxy_t* handle) {
  return static_cast<proxy::Proxy*>(handle);
}
const proxy::Proxy* of(const hummock_proxy_t* handle) {
  return static_cast<const proxy::Proxy*>(handle);
}

bool is_sound(const hummock_proxy_options_t* options) {
  if (options == nullptr || options->size != sizeof *options) return false;
  if (options->sizes > HUMMOCK_PROXY_FLOAT) return false;
  const hummock_proxy_fallback_t* fallback = options->fallback;
  return fallback == nullptr || (fallback->allocate != nullptr && fallback->release != nullptr &&
                                 fallback->reallocate != nullptr && fallback->usable_size != nullptr);
}

// The fallback of what stands for a proxy; null for a proxy.
const hummock_proxy_fallback_t* unmade(const hummock_proxy_t* handle) {
  if (handle->marks != nullptr) return nullptr;
  return &reinterpret_cast<const hummock_proxy_unmade_t*>(handle)->fallback;
}

size_t read(const size_t& counter) {
  return __atomic_load_n(&counter, __ATOMIC_RELAXED);
}

}  // namespace

hummock_proxy_t* hummock_proxy_create(const hummock_proxy_options_t* options) noexcept {
  if (is_sound(options)) return proxy::create(*options);
  errno = EINVAL;
  return nullptr;
}

void hummock_proxy_destroy(hummock_proxy_t* handle) noexcept {
  if (handle != nullptr) proxy::destroy(of(handle));
}

int hummock_proxy_thread_cache_create(hummock_proxy_t* handle, hummock_proxy_warmup_t warmup,
                                      const uint32_t* most, size_t count) noexcept {
  if (warmup > HUMMOCK_PROXY_HOT || (most == nullptr && count != 0)) return EINVAL;
  return proxy::create_cache(of(handle), warmup, most, count);
}

void hummock_proxy_thread_cache_destroy(hummock_proxy_t* handle) noexcept {
  proxy::destroy_cache(of(handle));
}

void* hummock_proxy_malloc(hummock_proxy_t* handle, size_t bytes, size_t alignment) noexcept {
  return hummock_proxy_malloc_inline(handle, bytes, alignment);
}

void hummock_proxy_free(hummock_proxy_t* handle, void* block) noexcept {
  hummock_proxy_free_inline(handle, block);
}

void* hummock_proxy_malloc_slow(hummock_proxy_t* handle, size_t bytes, size_t alignment) noexcept {
  if (const auto* fallback = unmade(handle)) return fallback->allocate(fallback->context, bytes, alignment);
  return proxy::allocate_slow(of(handle), bytes, alignment);
}

void hummock_proxy_free_slow(hummock_proxy_t* handle, void* block) noexcept {
  if (const auto* fallback = unmade(handle)) return fallback->release(fallback->context, block);
  proxy::release_slow(of(handle), block);
}

void* hummock_proxy_realloc(hummock_proxy_t* handle, void* block, size_t bytes, size_t alignment) noexcept {
  return proxy::reallocate(of(handle), block, bytes, alignment);
}

size_t hummock_proxy_usable_size(hummock_proxy_t* handle, void* block) noexcept {
  return proxy::usable_size(of(handle), block);
}

int32_t hummock_proxy_bucket_of(const hummock_proxy_t* handle, const void* address) noexcept {
  return proxy::bucket_of(of(handle), address);
}

uint32_t hummock_proxy_bucket_count(const hummock_proxy_t* handle) noexcept {
  return of(handle)->buckets;
}

uint32_t hummock_proxy_bucket_elements(const hummock_proxy_t* handle, size_t index) noexcept {
  return index < of(handle)->buckets ? of(handle)->pools[index].elements : 0;
}

int hummock_proxy_stats(const hummock_proxy_t* handle, hummock_proxy_stats_t* out) noexcept {
  if (!of(handle)->counting || out == nullptr) return EINVAL;
  const proxy::Counts& counts = of(handle)->counts;
  *out = {read(counts.attempts), read(counts.served), read(counts.fallback), read(counts.by_size),
          read(counts.by_saturation)};
  return 0;
}

int hummock_proxy_bucket_stats(const hummock_proxy_t* handle, size_t index,
                               hummock_proxy_bucket_stats_t* out) noexcept {
  if (!of(handle)->counting || index >= of(handle)->buckets || out == nullptr) return EINVAL;
  const proxy::BucketCounts& counts = of(handle)->pools[index].counts;
  *out = {read(counts.cache_hits), read(counts.hits), read(counts.misses), read(counts.frees)};
  return 0;
}
