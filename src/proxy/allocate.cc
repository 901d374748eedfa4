// Requests that are not served from the thread's cache in one step.
#include <errno.h>

#include "base/bits.h"
#include "base/message.h"
#include "proxy/proxy.h"

namespace hummock::proxy {
namespace {

constexpr unsigned kLargerBuckets = 3;

void count(const Proxy* proxy, size_t& counter) {
  if (proxy->counting) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

// Hands the element out. False when it is in use: two threads freed it at once.
bool hand_out(const Proxy* proxy, const Pool& pool, void* block) {
  hummock_proxy_mark_t* mark = mark_at(proxy, block);
  if (*mark != HUMMOCK_PROXY_MARK_NONE) {
    report(proxy, "was freed twice, and is in use again", block);
    return false;
  }
  *mark = pool.mark;
  return true;
}

void* from_cache(Proxy* proxy, Cache* cache, uint32_t bucket) {
  Bin& bin = cache->bins[bucket];
  while (!is_empty(bin) || refill(cache, bucket)) {
    void* block = take_out(proxy, bin);
    if (hand_out(proxy, proxy->pools[bucket], block)) return block;
  }
  return nullptr;
}

void* from_pool(Proxy* proxy, Pool& pool) {
  void* block;
  while (take(pool, &block, 1) != 0) {
    if (hand_out(proxy, pool, block)) return block;
  }
  return nullptr;
}

void* from_bucket(Proxy* proxy, uint32_t bucket) {
  Pool& pool = proxy->pools[bucket];
  Cache* cache = find_cache(proxy);
  if (cache != nullptr && cache->bins[bucket].capacity != 0) {
    void* block = from_cache(proxy, cache, bucket);
    count(proxy, block != nullptr ? pool.counts.cache_hits : pool.counts.misses);
    return block;
  }
  void* block = from_pool(proxy, pool);
  count(proxy, block != nullptr ? pool.counts.hits : pool.counts.misses);
  return block;
}

// Not null and no block: at an address where nothing is ever mapped.
void* no_block(size_t align) {
  return reinterpret_cast<void*>(align < 16 ? uintptr_t{16} : uintptr_t{align});
}

}  // namespace

void report(const Proxy* proxy, const char* what, const void* p) {
  if (proxy->misuse != nullptr) return proxy->misuse(proxy->misuse_context, what, p);
  base::die(base::Line() << "hummock_proxy: " << p << " " << what);
}

void* take_pooled(Proxy* proxy, size_t bytes, size_t align, uint32_t below, bool* full) {
  *full = false;
  if (align > kPoolStep) return nullptr;
  unsigned tried = 0;
  for (size_t i = hummock_proxy_index_for(proxy->sizes, bytes); i < below && tried <= kLargerBuckets; ++i) {
    if ((proxy->pools[i].element_size & (align - 1)) != 0) continue;
    ++tried;
    if (void* block = from_bucket(proxy, static_cast<uint32_t>(i))) return block;
  }
  *full = tried != 0;
  return nullptr;
}

void* allocate_slow(Proxy* proxy, size_t bytes, size_t align) {
  if (align > size_t{PTRDIFF_MAX} || bytes > size_t{PTRDIFF_MAX} - align) {
    errno = ENOMEM;
    return nullptr;
  }
  if (align == 0) align = 1;
  if (!base::is_power_of_two(align)) align = size_t{2} << base::log2_floor(align);
  if (bytes == 0) {
    if (align < kNoBlock) return no_block(align);
    bytes = 1;  // so strictly aligned only a true block is
  }
  count(proxy, proxy->counts.attempts);
  bool full;
  if (void* block = take_pooled(proxy, bytes, align, proxy->buckets, &full)) {
    count(proxy, proxy->counts.served);
    return block;
  }
  count(proxy, proxy->counts.fallback);
  count(proxy, full ? proxy->counts.by_saturation : proxy->counts.by_size);
  return proxy->fallback.allocate(proxy->fallback.context, bytes, align);
}

}  // namespace hummock::proxy
