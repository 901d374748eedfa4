// Frees that do not go to the thread's cache in one step; realloc; questions about a pointer.
#include <string.h>

#include "base/bits.h"
#include "proxy/proxy.h"

namespace hummock::proxy {
namespace {

// The bucket of an address; `buckets` or more when it is in none.
size_t bucket_at(const Proxy* proxy, const void* p) {
  return (reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(proxy->base)) / kGranule >>
         proxy->shift;
}

bool is_no_block(const void* p) {
  return reinterpret_cast<uintptr_t>(p) < kNoBlock;
}

// False, and misuse reported, when no live block begins at p.
bool check_live(const Proxy* proxy, const Pool& pool, const void* p) {
  if (index_at(pool, p) >= pool.elements) {
    report(proxy, "points into the pools, but is not the start of a block", p);
    return false;
  }
  if (*mark_at(proxy, p) == HUMMOCK_PROXY_MARK_NONE) {
    report(proxy, "is not live: freed before, or never handed out", p);
    return false;
  }
  return true;
}

void release_pooled(Proxy* proxy, uint32_t bucket, void* p) {
  Pool& pool = proxy->pools[bucket];
  if (!check_live(proxy, pool, p)) return;
  *mark_at(proxy, p) = HUMMOCK_PROXY_MARK_NONE;
  if (proxy->counting) __atomic_fetch_add(&pool.counts.frees, 1, __ATOMIC_RELAXED);
  Cache* cache = find_cache(proxy);
  if (cache != nullptr) {
    Bin& bin = cache->bins[bucket];
    if (bin.top != bin.limit || make_room(cache, bucket)) {
      put(proxy, bin, p);
      return;
    }
  }
  give(pool, &p, 1);
}

void* move_to(Proxy* proxy, void* target, void* p, size_t bytes) {
  if (target == nullptr) return nullptr;
  memcpy(target, p, bytes);
  release_slow(proxy, p);
  return target;
}

void* reallocate_pooled(Proxy* proxy, uint32_t bucket, void* p, size_t bytes, size_t align) {
  const Pool& pool = proxy->pools[bucket];
  if (!check_live(proxy, pool, p)) return nullptr;
  const size_t room = pool.element_size;
  const bool aligned = (reinterpret_cast<uintptr_t>(p) & (align - 1)) == 0;
  if (bytes > room || !aligned) {
    return move_to(proxy, allocate_slow(proxy, bytes, align), p, bytes < room ? bytes : room);
  }
  const size_t wanted = hummock_proxy_size_at(proxy->sizes, hummock_proxy_index_for(proxy->sizes, bytes));
  if (wanted * 5 >= room * 4) return p;
  bool full;
  void* smaller = move_to(proxy, take_pooled(proxy, bytes, align, bucket, &full), p, bytes);
  return smaller != nullptr ? smaller : p;
}

}  // namespace

void release_slow(Proxy* proxy, void* p) {
  const size_t bucket = bucket_at(proxy, p);
  if (bucket < proxy->buckets) {
    release_pooled(proxy, static_cast<uint32_t>(bucket), p);
  } else if (!is_no_block(p)) {
    proxy->fallback.release(proxy->fallback.context, p);
  }
}

void* reallocate(Proxy* proxy, void* p, size_t bytes, size_t align) {
  if (is_no_block(p)) return allocate_slow(proxy, bytes, align);
  if (bytes == 0) {
    release_slow(proxy, p);
    return nullptr;
  }
  if (align > size_t{PTRDIFF_MAX} || bytes > size_t{PTRDIFF_MAX} - align)
    return allocate_slow(proxy, bytes, align);
  if (align == 0) align = 1;
  if (!base::is_power_of_two(align)) align = size_t{2} << base::log2_floor(align);
  const size_t bucket = bucket_at(proxy, p);
  if (bucket < proxy->buckets) {
    return reallocate_pooled(proxy, static_cast<uint32_t>(bucket), p, bytes, align);
  }
  const hummock_proxy_fallback_t& fallback = proxy->fallback;
  // A block that became small enough comes into the pools. Only then: what is larger the fallback moves
  // itself, since of a block that it did not make it may know too little.
  bool full;
  if (bytes <= fallback.usable_size(fallback.context, p)) {
    void* pooled = move_to(proxy, take_pooled(proxy, bytes, align, proxy->buckets, &full), p, bytes);
    if (pooled != nullptr) return pooled;
  }
  return fallback.reallocate(fallback.context, p, bytes, align);
}

size_t usable_size(Proxy* proxy, void* p) {
  const size_t bucket = bucket_at(proxy, p);
  if (bucket < proxy->buckets) return proxy->pools[bucket].element_size;
  return is_no_block(p) ? 0 : proxy->fallback.usable_size(proxy->fallback.context, p);
}

int32_t bucket_of(const Proxy* proxy, const void* address) {
  const size_t bucket = bucket_at(proxy, address);
  if (bucket >= proxy->buckets) return -1;
  const Pool& pool = proxy->pools[bucket];
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - pool.base);
  return offset / pool.element_size < pool.elements ? static_cast<int32_t>(bucket) : -1;
}

}  // namespace hummock::proxy
