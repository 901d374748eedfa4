// All caches of a space, seen by who has entered it.
#include "os/lock.h"
#include "os/thread.h"
#include "space/cache_inside.h"

namespace hummock::space {
namespace {

bool has_caches(const Space* space) {
  return space->cache_blocks != 0 && space->rest == nullptr;
}

Cache* own_cache(const Space* space) {
  return static_cast<Cache*>(pthread_getspecific(space->cache_key));
}

// A thread that runs is out in a few instructions; one that does not must be let run.
void wait_for(const Cache* cache) {
  constexpr int kSpins = 200;
  // acquire: pairs with the release in end().
  for (int i = 0; __atomic_load_n(&cache->busy, __ATOMIC_ACQUIRE) != 0; ++i) {
    i < kSpins ? os::pause_cpu() : os::sleep_ms(1);
  }
}

// No other thread is inside the caches for which `wanted` from now on, nor will be.
template <class Wanted>
bool claim(Space* space, Wanted wanted) {
  const Cache* own = own_cache(space);
  bool any = false;
  for (Cache* cache = cache_at(space, space->control->caches); cache != nullptr;
       cache = cache_at(space, cache->next)) {
    if (cache == own || !wanted(cache)) continue;
    __atomic_exchange_n(&cache->claimed, 1, __ATOMIC_SEQ_CST);
    any = true;
  }
  if (!any) return false;
  if (space->fences) os::fence_others();
  for (Cache* cache = cache_at(space, space->control->caches); cache != nullptr;
       cache = cache_at(space, cache->next)) {
    if (cache->claimed != 0) wait_for(cache);
  }
  return true;
}

void unclaim(Cache* cache) {
  __atomic_store_n(&cache->claimed, 0, __ATOMIC_RELEASE);
}

}  // namespace

bool empty_caches(Space* space) {
  if (!has_caches(space)) return false;
  bool any = false;
  Cache* own = own_cache(space);
  if (own != nullptr && own->free_bytes != 0 && begin(space, own)) {
    give_all_back(own);
    end(own);
    any = true;
  }
  if (!claim(space, [](const Cache* cache) { return figure(cache->free_bytes) != 0; })) return any;
  for (Cache* cache = cache_at(space, space->control->caches); cache != nullptr;
       cache = cache_at(space, cache->next)) {
    if (cache->claimed == 0) continue;
    give_all_back(cache);
    unclaim(cache);
  }
  return true;
}

void stop_caches(Space* space) {
  if (has_caches(space)) claim(space, [](const Cache*) { return true; });
}

void restart_caches(Space* space) {
  if (!has_caches(space)) return;
  for (Cache* cache = cache_at(space, space->control->caches); cache != nullptr;
       cache = cache_at(space, cache->next)) {
    unclaim(cache);
  }
}

// Their threads are not in this process. Who forked keeps its own, in which a signal handler may be.
void drop_caches_of_others(Space* space) {
  if (!has_caches(space)) return;
  const Cache* own = own_cache(space);
  Cache* next;
  for (Cache* cache = cache_at(space, space->control->caches); cache != nullptr; cache = next) {
    next = cache_at(space, cache->next);
    if (cache != own) drop_cache(cache);
  }
}

Resting resting_in_caches(const Space* space) {
  Resting sum = {};
  if (!has_caches(space)) return sum;
  for (const Cache* cache = cache_at(space, figure(space->control->caches)); cache != nullptr;
       cache = cache_at(space, figure(cache->next))) {
    sum.bytes += figure(cache->free_bytes);
    for (unsigned bin = 1; bin <= kCacheBins; ++bin) {
      sum.blocks += __atomic_load_n(&cache->bins[bin].count, __ATOMIC_RELAXED);
    }
    ++sum.records;
  }
  return sum;
}

}  // namespace hummock::space
