// The two calls as they mostly go: from and to the thread's cache.
#ifndef HUMMOCK_PROXY_FAST_H
#define HUMMOCK_PROXY_FAST_H

#include "proxy/proxy.h"

namespace hummock::proxy {

__attribute__((always_inline)) inline void* allocate(Proxy* proxy, size_t bytes, size_t align) {
  const size_t last = bytes - 1;  // 0 bytes: beyond any limit
  if (__builtin_expect(last >= proxy->fast_limit || align > proxy->fast_align, false)) {
    return allocate_slow(proxy, bytes, align);
  }
  Cache* cache = cache_of(proxy);
  if (__builtin_expect(cache == nullptr, false)) return allocate_slow(proxy, bytes, align);
  Bin& bin = cache->bins[proxy->class_of[last / kSizeStep]];
  uint32_t* top = bin.top;
  if (__builtin_expect(top == bin.items, false)) return allocate_slow(proxy, bytes, align);
  const uint32_t index = *--top;
  uint8_t* used = bin.used + index;
  // In use although it stands here: two threads freed it at once.
  if (__builtin_expect(*used != 0, false)) return allocate_slow(proxy, bytes, align);
  bin.top = top;
  *used = 1;
  return bin.base + uint64_t{index} * bin.element_size;
}

__attribute__((always_inline)) inline void release(Proxy* proxy, void* p) {
  const size_t bucket =
      (reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(proxy->base)) >> (proxy->shift & 63);
  if (__builtin_expect(bucket >= proxy->fast_buckets, false)) return release_slow(proxy, p);
  Cache* cache = cache_of(proxy);
  if (__builtin_expect(cache == nullptr, false)) return release_slow(proxy, p);
  Bin& bin = cache->bins[bucket];
  uint32_t* top = bin.top;
  if (__builtin_expect(top == bin.limit, false)) return release_slow(proxy, p);
  const uint64_t index = index_at(bin, static_cast<uint64_t>(static_cast<char*>(p) - bin.base));
  if (__builtin_expect(index >= bin.elements, false)) return release_slow(proxy, p);
  uint8_t* used = bin.used + index;
  if (__builtin_expect(*used == 0, false)) return release_slow(proxy, p);
  *used = 0;
  *top = static_cast<uint32_t>(index);
  bin.top = top + 1;
}

}  // namespace hummock::proxy

#endif  // HUMMOCK_PROXY_FAST_H
