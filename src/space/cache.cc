#include "space/cache.h"

namespace hummock::space {
namespace {

// The cache that the thread used last. A serial never comes again, so the record of a space that is gone is
// not taken for another's.
struct Near {
  uint64_t serial;
  Cache* cache;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit Near near = {0, nullptr};

void put(uint64_t& field, uint64_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}

// A resting block's second word: only the cache's thread may write there, and not to the header, which
// the neighbour's freer may be changing.
uint64_t resting_mark(uint64_t at) {
  return ~(at * 0xA0761D6478BD642Fu);
}
bool is_resting(const Engine* engine, uint64_t at) {
  return __atomic_load_n(&word(const_cast<Engine*>(engine), at + kHeader), __ATOMIC_RELAXED) ==
         resting_mark(at);
}

void push(Cache* cache, unsigned bin, uint64_t at) {
  Engine* engine = cache->space->engine;
  word(engine, at) = cache->bins[bin].first;
  __atomic_store_n(&word(engine, at + kHeader), resting_mark(at), __ATOMIC_RELAXED);
  cache->bins[bin].first = at;
  ++cache->bins[bin].count;
  put(cache->free_bytes, cache->free_bytes + size_in(header(engine, at)));
  put(cache->free_blocks, cache->free_blocks + 1);
}

uint64_t pop(Cache* cache, unsigned bin) {
  Engine* engine = cache->space->engine;
  const uint64_t at = cache->bins[bin].first;
  cache->bins[bin].first = word(engine, at);
  --cache->bins[bin].count;
  __atomic_store_n(&word(engine, at + kHeader), 0, __ATOMIC_RELAXED);
  put(cache->free_bytes, cache->free_bytes - size_in(header(engine, at)));
  put(cache->free_blocks, cache->free_blocks - 1);
  return at;
}

// Entered: blocks of a bin go back until `keep` are left.
void give_back(Cache* cache, unsigned bin, uint64_t keep) {
  Space* space = cache->space;
  while (cache->bins[bin].count > keep) {
    const uint64_t at = pop(cache, bin);
    forget_cached(space, at);
    give(space->engine, at);
  }
}

void give_all_back(Cache* cache) {
  for (unsigned bin = 1; bin <= kCacheBins; ++bin) give_back(cache, bin, 0);
}

void end_of_thread(void* record) {
  Cache* cache = static_cast<Cache*>(record);
  Space* space = cache->space;
  near = {0, nullptr};
  if (!enter(space)) return;
  give_all_back(cache);
  space->control->caches[cache->slot] = 0;
  space->control->own -= size_in(header(space->engine, cache->at));
  give(space->engine, cache->at);
  leave(space);
}

// Null when all slots are in use, or memory is short: the thread then uses the pool.
Cache* make_cache(Space* space) {
  if (!enter(space)) return nullptr;
  Control* control = space->control;
  Engine* engine = space->engine;
  unsigned slot = 0;
  while (slot < kMostCaches && control->caches[slot] != 0) ++slot;
  const uint64_t at =
      slot < kMostCaches && control->pending == 0 ? take(engine, block_size(sizeof(Cache))) : 0;
  if (at != 0) {
    Cache* cache = static_cast<Cache*>(payload(engine, at));
    *cache = Cache{};
    cache->space = space;
    cache->at = at;
    cache->slot = slot;
    set_header(engine, at, header(engine, at) | uint64_t{kOwnRecord} << kSizeBits);
    control->caches[slot] = at;
    control->own += size_in(header(engine, at));
  }
  leave(space);
  if (at == 0) return nullptr;
  Cache* cache = static_cast<Cache*>(payload(engine, at));
  if (pthread_setspecific(space->cache_key, cache) == 0) return cache;
  end_of_thread(cache);
  return nullptr;
}

__attribute__((noinline)) Cache* find_cache(Space* space) {
  void* mine = pthread_getspecific(space->cache_key);
  Cache* cache = mine != nullptr ? static_cast<Cache*>(mine) : make_cache(space);
  if (cache != nullptr) near = {space->serial, cache};
  return cache;
}

Cache* cache_of(Space* space) {
  return __builtin_expect(near.serial == space->serial, true) ? near.cache : find_cache(space);
}

// Takes half of what a bin may hold from the pool.
bool refill(Cache* cache, unsigned bin) {
  Space* space = cache->space;
  Engine* engine = space->engine;
  const uint64_t size = block_size(size_t{bin} << space->cache_shift);
  const unsigned most = (space->cache_blocks + 1) / 2;
  if (!enter(space)) return false;
  for (unsigned i = 0; i < most; ++i) {
    const uint64_t at = take(engine, size);
    if (at == 0) break;
    set_header(engine, at, header(engine, at) | kFromCache);
    space->control->cached += size_in(header(engine, at));
    push(cache, bin, at);
  }
  leave(space);
  return cache->bins[bin].count != 0;
}

}  // namespace

int make_cache_key(Space* space) {
  static uint64_t serials;  // atomic; relaxed: only that they differ counts
  space->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  return pthread_key_create(&space->cache_key, end_of_thread);
}

void* allocate_cached(Space* space, size_t request) {
  const size_t step = size_t{1} << space->cache_shift;
  const unsigned bin = request == 0 ? 1 : static_cast<unsigned>((request + step - 1) >> space->cache_shift);
  Cache* cache = cache_of(space);
  if (cache == nullptr || (cache->bins[bin].count == 0 && !refill(cache, bin))) {
    return allocate_from_pool(space, request, kGranule);
  }
  return payload(space->engine, pop(cache, bin));
}

bool release_cached(Space* space, uint64_t at) {
  Engine* engine = space->engine;
  const uint64_t value = header(engine, at);
  if ((value & kFromCache) == 0) return false;
  if (is_resting(engine, at)) bad_block(space, "free", payload(engine, at));
  Cache* cache = cache_of(space);
  if (cache == nullptr) return false;
  // A block may be a granule longer than its bin's size asked for.
  const uint64_t steps = (size_in(value) - kHeader) >> space->cache_shift;
  const unsigned bin = steps < kCacheBins ? static_cast<unsigned>(steps) : kCacheBins;
  if (cache->bins[bin].count == space->cache_blocks) {
    if (!enter(space)) return false;
    give_back(cache, bin, space->cache_blocks / 2);
    leave(space);
  }
  push(cache, bin, at);
  return true;
}

void forget_cached(Space* space, uint64_t at) {
  const uint64_t value = header(space->engine, at);
  if ((value & kFromCache) == 0) return;
  space->control->cached -= size_in(value);
  set_header(space->engine, at, value & ~kFromCache);
}

void flush(Space* space) {
  if (space->rest != nullptr) {
    const int saved = errno;
    if (enter(space)) wake(space);
    errno = saved;
  }
  if (space->cache_blocks == 0 || space->rest != nullptr) return;
  Cache* cache = static_cast<Cache*>(pthread_getspecific(space->cache_key));
  if (cache == nullptr || !enter(space)) return;
  give_all_back(cache);
  leave(space);
}

}  // namespace hummock::space
