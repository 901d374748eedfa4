// Threads' caches: made, filled, emptied, and given back when a thread ends.
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/bits.h"
#include "os/os.h"
#include "proxy/proxy.h"

__thread hummock_proxy_cache_t* hummock_proxy_last_cache __attribute__((tls_model("initial-exec"))) =
    &hummock::proxy::no_cache;

namespace hummock::proxy {

os::Lock<os::Rank::proxies> registry;
Table no_caches;
hummock_proxy_cache_t no_cache = {
    .serial = UINT64_MAX, .next = nullptr, .prev = nullptr, .place = nullptr, .bins = {}};
__thread Table* thread_caches __attribute__((tls_model("initial-exec"))) = &no_caches;

namespace {

pthread_key_t exit_key;
bool has_exit_key;  // guarded by `registry`

Proxy* proxy_of(const hummock_proxy_cache_t* cache) {
  return static_cast<const Cache*>(cache)->proxy;
}

void update_limit(Cache* cache, uint32_t bucket) {
  Bin& bin = cache->bins[bucket];
  const uint32_t waiting = cache->fresh[bucket].end - cache->fresh[bucket].first;
  bin.limit = bin.items + (bin.capacity - waiting);
}

// A part of a bin's content that goes between it and the pool at once.
unsigned batch_of(size_t content) {
  const size_t half = (content + 1) / 2;
  return half < kBatch ? static_cast<unsigned>(half) : kBatch;
}

// Gives as many of a bin's elements to the pool: at most kBatch, and at least one.
void give_some(Cache* cache, uint32_t bucket, size_t count) {
  void* blocks[kBatch];
  for (size_t i = count; i-- != 0;) blocks[i] = take_out(proxy_of(cache), cache->bins[bucket]);
  give(proxy_of(cache)->pools[bucket], blocks, static_cast<unsigned>(count));
}

// Takes elements from the pool; how many it got.
unsigned take_some(Cache* cache, uint32_t bucket, unsigned most) {
  void* blocks[kBatch];
  const unsigned count = take(proxy_of(cache)->pools[bucket], blocks, most);
  for (unsigned i = 0; i < count; ++i) put(proxy_of(cache), cache->bins[bucket], blocks[i]);
  return count;
}

// Under `registry`.
void give_back(Cache* cache, uint32_t bucket) {
  const Bin& bin = cache->bins[bucket];
  while (const size_t count = static_cast<size_t>(bin.top - bin.items)) {
    give_some(cache, bucket, count < kBatch ? count : kBatch);
  }
  give_range(proxy_of(cache)->pools[bucket], cache->fresh[bucket].first, cache->fresh[bucket].end);
}

// Under `registry`.
void unlink(hummock_proxy_cache_t* cache) {
  (cache->prev == nullptr ? proxy_of(cache)->caches : cache->prev->next) = cache->next;
  if (cache->next != nullptr) cache->next->prev = cache->prev;
  __atomic_store_n(cache->place, nullptr, __ATOMIC_RELAXED);  // see find_cache
}

void end_cache(Cache* cache) {
  for (uint32_t i = 0; i < proxy_of(cache)->buckets; ++i) {
    if (cache->bins[i].capacity != 0) give_back(cache, i);
  }
  unlink(cache);
  os::unmap(cache, cache->mapped);
}

size_t table_bytes() {
  return base::align_up(sizeof(Table), os::page_size());
}

// Under `registry`, by the table's thread.
void unmap_orphans(Table* table) {
  while (table->orphans != nullptr) {
    Cache* cache = static_cast<Cache*>(table->orphans);
    if (hummock_proxy_last_cache == cache) hummock_proxy_last_cache = &no_cache;
    table->orphans = cache->next;
    os::unmap(cache, cache->mapped);
  }
}

// The thread ends. Its later frees, in destructors still to come, go to the pools.
void leave(void* record) {
  thread_caches = &no_caches;
  hummock_proxy_last_cache = &no_cache;
  Table* table = static_cast<Table*>(record);
  {
    os::LockGuard guard(registry);
    for (hummock_proxy_cache_t* cache : table->of) {
      if (cache != nullptr) end_cache(static_cast<Cache*>(cache));
    }
    unmap_orphans(table);
  }
  os::unmap(table, table_bytes());
}

int own_table() {
  if (thread_caches != &no_caches) return 0;
  {
    os::LockGuard guard(registry);
    if (!has_exit_key && pthread_key_create(&exit_key, leave) != 0) return EAGAIN;
    has_exit_key = true;
  }
  void* table = os::map(table_bytes());
  if (table == nullptr) return ENOMEM;
  if (const int error = pthread_setspecific(exit_key, table)) {
    os::unmap(table, table_bytes());
    return error;
  }
  thread_caches = static_cast<Table*>(table);
  return 0;
}

uint32_t capacity_of(const Pool& pool, uint32_t wished) {
  return wished < pool.elements ? wished : pool.elements;
}

uint32_t wanted_of(uint32_t capacity, hummock_proxy_warmup_t warmup) {
  if (warmup == HUMMOCK_PROXY_HOT) return capacity;
  return warmup == HUMMOCK_PROXY_WARM ? (capacity + 1) / 2 : 0;
}

void open_bin(Cache* cache, uint32_t bucket, hummock_proxy_warmup_t warmup) {
  uint32_t wanted = wanted_of(static_cast<uint32_t>(cache->bins[bucket].capacity), warmup);
  Fresh& fresh = cache->fresh[bucket];
  const uint32_t unused = wanted == 0 ? 0 : take_fresh(proxy_of(cache)->pools[bucket], wanted, &fresh.first);
  fresh.end = fresh.first + unused;
  wanted -= unused;
  // The rest must come from elements that were used before and are back.
  while (wanted != 0) {
    const unsigned count = take_some(cache, bucket, wanted < kBatch ? wanted : kBatch);
    if (count == 0) break;
    wanted -= count;
  }
  update_limit(cache, bucket);
}

Cache* map_cache(Proxy* proxy, const uint32_t* most, uint32_t count) {
  size_t items = 1;
  for (uint32_t i = 0; i < count; ++i) items += capacity_of(proxy->pools[i], most[i]) + 1;
  const size_t bytes =
      base::align_up(sizeof(Cache) + items * sizeof(hummock_proxy_granule_t), os::page_size());
  Cache* cache = static_cast<Cache*>(os::map(bytes));
  if (cache == nullptr) return nullptr;
  cache->serial = proxy->serial;
  cache->proxy = proxy;
  cache->mapped = bytes;
  auto* place = reinterpret_cast<hummock_proxy_granule_t*>(cache + 1);
  *place++ = proxy->granules;
  for (Bin& bin : cache->bins) bin = {place, place, place, 0};
  for (uint32_t i = 0; i < count; ++i) {
    const size_t capacity = capacity_of(proxy->pools[i], most[i]);
    if (capacity == 0) continue;
    cache->bins[i] = {place, place, place, capacity};
    place += capacity;
    *place++ = proxy->granules;
  }
  return cache;
}

}  // namespace

bool refill(Cache* cache, uint32_t bucket) {
  if (cache->bins[bucket].capacity == 0) return false;
  Fresh& fresh = cache->fresh[bucket];
  const unsigned batch = batch_of(cache->bins[bucket].capacity);
  const uint32_t left = fresh.end - fresh.first;
  if (left == 0) return take_some(cache, bucket, batch) != 0;
  const uint32_t count = left < batch ? left : batch;
  for (uint32_t i = count; i-- != 0;) {
    put(proxy_of(cache), cache->bins[bucket], element_at(proxy_of(cache)->pools[bucket], fresh.first + i));
  }
  fresh.first += count;
  update_limit(cache, bucket);
  return true;
}

bool make_room(Cache* cache, uint32_t bucket) {
  const Bin& bin = cache->bins[bucket];
  if (bin.limit == bin.items) return false;
  give_some(cache, bucket, batch_of(static_cast<size_t>(bin.top - bin.items)));
  return true;
}

Cache* find_cache(const Proxy* proxy) {
  hummock_proxy_cache_t* last = hummock_proxy_last_cache;
  if (last->serial == proxy->serial) return static_cast<Cache*>(last);
  // relaxed: another thread writes there only when it destroys a proxy, which nobody uses then.
  hummock_proxy_cache_t* cache = __atomic_load_n(&thread_caches->of[proxy->slot], __ATOMIC_RELAXED);
  if (cache != nullptr) hummock_proxy_last_cache = cache;
  return static_cast<Cache*>(cache);
}

int create_cache(Proxy* proxy, hummock_proxy_warmup_t warmup, const uint32_t* most, size_t count) {
  if (proxy->slot == kSlots) return EAGAIN;
  destroy_cache(proxy);
  if (const int error = own_table()) return error;
  const uint32_t buckets = count < proxy->buckets ? static_cast<uint32_t>(count) : proxy->buckets;
  Cache* cache = map_cache(proxy, most, buckets);
  if (cache == nullptr) return ENOMEM;
  for (uint32_t i = 0; i < buckets; ++i) {
    if (cache->bins[i].capacity != 0) open_bin(cache, i, warmup);
  }
  os::LockGuard guard(registry);
  unmap_orphans(thread_caches);
  cache->table = thread_caches;
  cache->place = &thread_caches->of[proxy->slot];
  cache->next = proxy->caches;
  if (cache->next != nullptr) cache->next->prev = cache;
  proxy->caches = cache;
  __atomic_store_n(cache->place, static_cast<hummock_proxy_cache_t*>(cache), __ATOMIC_RELAXED);
  return 0;
}

void destroy_cache(Proxy* proxy) {
  Cache* cache = find_cache(proxy);
  if (cache == nullptr) return;
  hummock_proxy_last_cache = &no_cache;
  os::LockGuard guard(registry);
  end_cache(cache);
}

void forget_caches(Proxy* proxy) {
  os::LockGuard guard(registry);
  while (proxy->caches != nullptr) {
    Cache* cache = static_cast<Cache*>(proxy->caches);
    unlink(cache);
    cache->next = cache->table->orphans;
    cache->table->orphans = cache;
    const size_t kept = base::align_up(sizeof(Cache), os::page_size());
    if (cache->mapped > kept) os::purge(reinterpret_cast<char*>(cache) + kept, cache->mapped - kept);
  }
  unmap_orphans(thread_caches);
}

}  // namespace hummock::proxy
