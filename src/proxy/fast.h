// The two calls as they mostly go: from and to the thread's cache.
#ifndef HUMMOCK_PROXY_FAST_H
#define HUMMOCK_PROXY_FAST_H

#include "proxy/proxy.h"

namespace hummock::proxy {

__attribute__((always_inline)) inline void* allocate(Proxy* proxy, size_t bytes, size_t align) {
  const size_t last = bytes - 1;  // 0 bytes: beyond any limit
  if (__builtin_expect(last >= proxy->direct_size || align > proxy->even, false)) {
    return allocate_slow(proxy, bytes, align);
  }
  Cache* cache = last_cache;
  if (__builtin_expect(cache->proxy != proxy, false)) return allocate_slow(proxy, bytes, align);
  Bin& bin = cache->bins[proxy->bin_of[last / kSizeStep]];
  void** top = bin.top;
  if (__builtin_expect(top == bin.items, false)) return allocate_slow(proxy, bytes, align);
  void* block = *--top;
  Mark* mark = mark_at(proxy, block);
  // In use although it stands here: two threads freed it at once.
  if (__builtin_expect(*mark != Mark::none, false)) return allocate_slow(proxy, bytes, align);
  *mark = Mark::plain;
  bin.top = top;
  return block;
}

__attribute__((always_inline)) inline void release(Proxy* proxy, void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const size_t offset = address - reinterpret_cast<uintptr_t>(proxy->base);
  if (__builtin_expect(offset >= proxy->span || address % kGranule != 0, false))
    return release_slow(proxy, p);
  Cache* cache = last_cache;
  if (__builtin_expect(cache->proxy != proxy, false)) return release_slow(proxy, p);
  Bin& bin = cache->bins[offset >> (proxy->shift & 63)];
  void** top = bin.top;
  if (__builtin_expect(top == bin.limit, false)) return release_slow(proxy, p);
  Mark* mark = mark_at(proxy, p);
  if (__builtin_expect(*mark != Mark::plain, false)) return release_slow(proxy, p);
  *mark = Mark::none;
  *top = p;
  bin.top = top + 1;
}

}  // namespace hummock::proxy

#endif  // HUMMOCK_PROXY_FAST_H
