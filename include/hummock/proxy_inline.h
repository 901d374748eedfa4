/* hummock_proxy_malloc and hummock_proxy_free, inline: the usual case, from and to the calling thread's
 * cache. Everything else is a call. The meaning is the same.
 *
 * All else that is declared here belongs to the library, and stays fixed within a major version. */
#ifndef HUMMOCK_PROXY_INLINE_H
#define HUMMOCK_PROXY_INLINE_H

#include "proxy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HUMMOCK_PROXY_DIRECT = 1024,   /* sizes up to this find their bin in a table */
  HUMMOCK_PROXY_SIZE_STEP = 4,   /* all element sizes are multiples of this */
  HUMMOCK_PROXY_GRANULE = 16,    /* the smallest element, and the alignment of what the inline calls return */
  HUMMOCK_PROXY_GRANULE_LOG2 = 4 /* its binary logarithm */
};

/* The mark of a granule. In C++ it has a type of its own: then the compiler knows that writing a mark does
 * not change what it has in registers, which gains 8 % of a loop's speed. */
#ifdef __cplusplus
enum hummock_proxy_mark_t : unsigned char
#else
typedef unsigned char hummock_proxy_mark_t;
enum
#endif
{
  HUMMOCK_PROXY_MARK_NONE = 0,   /* no element that is handed out begins there */
  HUMMOCK_PROXY_MARK_PLAIN = 1,  /* one does */
  HUMMOCK_PROXY_MARK_SPECIAL = 2 /* one does, in a bucket that is never inline; or it is the stopper */
};

/* A granule's number. It has a type of its own for the same reason. */
typedef unsigned long long hummock_proxy_granule_t;

/* The cached blocks of one bucket, as granule numbers from `items` to `top`; the last one is taken first.
 * Below them, at items[-1], is the stopper: the granule behind the pools, whose mark says that it is taken.
 * So malloc need not check whether there is a block. */
typedef struct hummock_proxy_bin {
  hummock_proxy_granule_t* top;
  hummock_proxy_granule_t* limit;
  hummock_proxy_granule_t* items;
  size_t capacity;
} hummock_proxy_bin_t;

/* The part of a thread's cache that the inline calls use. */
typedef struct hummock_proxy_cache {
  uint64_t serial;                  /* its proxy's */
  struct hummock_proxy_cache* next; /* for the library's lists */
  struct hummock_proxy_cache* prev;
  struct hummock_proxy_cache** place;
  hummock_proxy_bin_t bins[HUMMOCK_PROXY_MOST_BUCKETS + 1]; /* the last is always empty */
} hummock_proxy_cache_t;

/* The part of a proxy that the inline calls use. Its pools are at distances of 2^shift granules from `base`.
 */
struct hummock_proxy {
  uint64_t serial; /* from 1 on; no two proxies have the same */
  char* base;
  hummock_proxy_mark_t* marks; /* one for each granule */
  uint32_t shift;
  uint16_t bin_of[HUMMOCK_PROXY_DIRECT /
                  HUMMOCK_PROXY_SIZE_STEP]; /* the bin's distance from the first, in bytes */
};

/* A proxy for where there is none yet: no pools, no marks, and the calls below go to the fallback. */
typedef struct hummock_proxy_unmade {
  struct hummock_proxy head; /* zeros */
  hummock_proxy_fallback_t fallback;
} hummock_proxy_unmade_t;

/* The cache that the calling thread used last; without one, a cache of no proxy. */
extern HUMMOCK_EXPORT __thread hummock_proxy_cache_t* hummock_proxy_last_cache
    __attribute__((tls_model("initial-exec")));

/* The library's functions for everything else. */
HUMMOCK_EXPORT void* hummock_proxy_malloc_slow(hummock_proxy_t* proxy, size_t bytes,
                                               size_t alignment) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_proxy_free_slow(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

#define HUMMOCK_PROXY_RARELY(condition) __builtin_expect((condition), 0)
#define HUMMOCK_PROXY_OFTEN(condition) __builtin_expect((condition), 1)

/* The two calls if the thread's cache can serve them. Else they return 0 and change nothing.
 *
 * The thread that hands out or frees an element owns it. It passes to another thread by the program's own
 * synchronisation or the library's, so its mark is not atomic. */
static inline __attribute__((always_inline)) int hummock_proxy_try_malloc(hummock_proxy_t* proxy,
                                                                          size_t bytes, size_t alignment,
                                                                          void** out) {
  const size_t last = bytes - 1; /* for 0 bytes beyond any table */
  if (HUMMOCK_PROXY_RARELY(last >= HUMMOCK_PROXY_DIRECT || alignment > HUMMOCK_PROXY_GRANULE)) return 0;
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(cache->serial != proxy->serial)) return 0;
  const size_t distance = proxy->bin_of[last / HUMMOCK_PROXY_SIZE_STEP];
  hummock_proxy_bin_t* bin = (hummock_proxy_bin_t*)((char*)cache->bins + distance);
  hummock_proxy_granule_t* top = bin->top - 1;
  const hummock_proxy_granule_t granule = *top;
  /* A cached block is marked if two threads freed it at once, or if it is the stopper. */
  if (HUMMOCK_PROXY_RARELY(proxy->marks[granule] != HUMMOCK_PROXY_MARK_NONE)) return 0;
  bin->top = top;
  *out = proxy->base + granule * HUMMOCK_PROXY_GRANULE;
  proxy->marks[granule] = HUMMOCK_PROXY_MARK_PLAIN;
  return 1;
}

/* The pointer is checked before the cache: the other order costs registers, and 8 % of a loop's speed. */
static inline __attribute__((always_inline)) int hummock_proxy_try_free(hummock_proxy_t* proxy, void* block) {
  /* Rotated, so that an address that is not aligned is beyond all pools, too. */
  const size_t offset = (size_t)((char*)block - proxy->base);
  const size_t granule =
      offset >> HUMMOCK_PROXY_GRANULE_LOG2 | offset << (sizeof offset * 8 - HUMMOCK_PROXY_GRANULE_LOG2);
  /* By arithmetic, so that it need not wait for the mark to be loaded. */
  const size_t bucket = granule >> (proxy->shift & 63);
  if (HUMMOCK_PROXY_RARELY(bucket >= HUMMOCK_PROXY_MOST_BUCKETS)) return 0;
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(cache->serial != proxy->serial)) return 0;
  hummock_proxy_bin_t* bin = &cache->bins[bucket];
  hummock_proxy_granule_t* top = bin->top;
  hummock_proxy_mark_t* mark = &proxy->marks[granule];
  /* In this order: where there is no bucket there are no marks, but the bin is full. */
  if (HUMMOCK_PROXY_RARELY(top == bin->limit || *mark != HUMMOCK_PROXY_MARK_PLAIN)) return 0;
  *mark = HUMMOCK_PROXY_MARK_NONE;
  *top = granule;
  bin->top = top + 1;
  return 1;
}

static inline __attribute__((always_inline)) void* hummock_proxy_malloc_inline(hummock_proxy_t* proxy,
                                                                               size_t bytes,
                                                                               size_t alignment) {
  void* block;
  if (HUMMOCK_PROXY_OFTEN(hummock_proxy_try_malloc(proxy, bytes, alignment, &block))) return block;
  return hummock_proxy_malloc_slow(proxy, bytes, alignment);
}

static inline __attribute__((always_inline)) void hummock_proxy_free_inline(hummock_proxy_t* proxy,
                                                                            void* block) {
  if (HUMMOCK_PROXY_RARELY(!hummock_proxy_try_free(proxy, block))) hummock_proxy_free_slow(proxy, block);
}

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_PROXY_INLINE_H */
