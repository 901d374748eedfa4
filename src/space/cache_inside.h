// Which thread is inside a cache: its own, or one that empties it.
//
// A thread's cache is its own: with a plain store it says that it is inside, and then looks whether another
// thread wants to empty the cache. A thread that has entered the space may empty others' caches. It claims
// them, makes sure by a barrier in all threads that each of them sees that, and waits for those that are
// inside, a few instructions each. A thread that finds its cache claimed, or finds itself inside already
// because it is in a signal handler, uses the pool. If the system has no such barrier, the thread's store is
// an exchange.
#ifndef HUMMOCK_SPACE_CACHE_INSIDE_H
#define HUMMOCK_SPACE_CACHE_INSIDE_H

#include "space/cache.h"

namespace hummock::space {

template <class Number>
inline void put(Number& field, Number value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}

// False: the pool must do. In the order busy, claimed; who empties writes claimed, then reads busy.
__attribute__((always_inline)) inline bool begin(Space* space, Cache* cache) {
  if (__builtin_expect(__atomic_load_n(&cache->busy, __ATOMIC_RELAXED) != 0, false)) return false;
  if (__builtin_expect(space->fences, true)) {
    __atomic_store_n(&cache->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // for the processor, fence_others() in claim()
  } else {
    __atomic_exchange_n(&cache->busy, 1, __ATOMIC_SEQ_CST);
  }
  // acquire: pairs with the release in unclaim(); seq_cst with the exchange in claim().
  if (__builtin_expect(__atomic_load_n(&cache->claimed, __ATOMIC_SEQ_CST) == 0, true)) return true;
  __atomic_store_n(&cache->busy, 0, __ATOMIC_RELEASE);
  return false;
}
// release: pairs with the acquire in claim().
inline void end(Cache* cache) {
  __atomic_store_n(&cache->busy, 0, __ATOMIC_RELEASE);
}

inline Cache* cache_at(const Space* space, uint64_t at) {
  return at == 0 ? nullptr : static_cast<Cache*>(payload(space->engine, at));
}

// Its blocks go back to the pool. Inside both.
void give_all_back(Cache* cache);

// Entered; its blocks go back, and its record.
void drop_cache(Cache* cache);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_CACHE_INSIDE_H
