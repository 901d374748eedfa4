/* The proxy's two calls as they mostly go, for programs that want them inline: from and to the calling
 * thread's cache, everything else by a call. Same meaning as hummock_proxy_malloc and hummock_proxy_free.
 *
 * What is declared here beside them is the library's own, and fixed as long as its major version. */
#ifndef HUMMOCK_PROXY_INLINE_H
#define HUMMOCK_PROXY_INLINE_H

#include "proxy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HUMMOCK_PROXY_DIRECT = 1024,   /* sizes up to this find their bin in a table */
  HUMMOCK_PROXY_SIZE_STEP = 4,   /* all element sizes are multiples of this */
  HUMMOCK_PROXY_GRANULE = 16,    /* no element is smaller; what the inline calls hand out is aligned so */
  HUMMOCK_PROXY_GRANULE_LOG2 = 4 /* of it */
};

/* Of a granule. In C++ a type of its own: the compiler then knows that what it has in registers stays as it
 * is when a mark is written, and keeps 8 % of a loop's speed. */
#ifdef __cplusplus
enum hummock_proxy_mark_t : unsigned char
#else
typedef unsigned char hummock_proxy_mark_t;
enum
#endif
{
  HUMMOCK_PROXY_MARK_NONE = 0,   /* no element begins there that is handed out */
  HUMMOCK_PROXY_MARK_PLAIN = 1,  /* one does */
  HUMMOCK_PROXY_MARK_SPECIAL = 2 /* one does, in a bucket that is never inline; or it is the stopper */
};

/* A granule's number: for the same reason of a type that the other fields have not. */
typedef unsigned long long hummock_proxy_granule_t;

/* What a thread has at hand of one bucket: the blocks from `items` to `top`, of which the last goes first, as
 * numbers of granules. Below them, at items[-1], stands the stopper: the granule behind the pools, whose mark
 * says that it is not to be had, so that who takes a block need not look whether there is one. */
typedef struct hummock_proxy_bin {
  hummock_proxy_granule_t* top;
  hummock_proxy_granule_t* limit;
  hummock_proxy_granule_t* items;
  size_t capacity;
} hummock_proxy_bin_t;

/* A thread's cache for a proxy, as far as the inline calls know it. */
typedef struct hummock_proxy_cache {
  uint64_t serial;                  /* its proxy's */
  struct hummock_proxy_cache* next; /* the library's lists */
  struct hummock_proxy_cache* prev;
  struct hummock_proxy_cache** place;
  hummock_proxy_bin_t bins[HUMMOCK_PROXY_MOST_BUCKETS + 1]; /* the last is ever empty */
} hummock_proxy_cache_t;

/* A proxy, as far as the inline calls know it. Its pools stand at distances of 2^shift granules from `base`.
 */
struct hummock_proxy {
  uint64_t serial; /* from 1, and never that of another */
  char* base;
  hummock_proxy_mark_t* marks; /* one a granule */
  uint32_t shift;
  uint16_t bin_of[HUMMOCK_PROXY_DIRECT / HUMMOCK_PROXY_SIZE_STEP]; /* its distance from the first, in bytes */
};

/* Stands for a proxy where there is none yet: no pools, no marks, and the calls below go to the fallback. */
typedef struct hummock_proxy_unmade {
  struct hummock_proxy head; /* zeros */
  hummock_proxy_fallback_t fallback;
} hummock_proxy_unmade_t;

/* The calling thread's cache that was used last; one of no proxy when there is none. */
extern HUMMOCK_EXPORT __thread hummock_proxy_cache_t* hummock_proxy_last_cache
    __attribute__((tls_model("initial-exec")));

/* The library's, for what the inline calls leave. */
HUMMOCK_EXPORT void* hummock_proxy_malloc_slow(hummock_proxy_t* proxy, size_t bytes,
                                               size_t alignment) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_proxy_free_slow(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

#define HUMMOCK_PROXY_RARELY(condition) __builtin_expect((condition), 0)
#define HUMMOCK_PROXY_OFTEN(condition) __builtin_expect((condition), 1)

/* The two calls when the thread's cache can serve them; else 0, and nothing happened.
 *
 * Who hands an element out or frees it owns it, and it passes from thread to thread by the program's own
 * synchronisation or the library's: so its mark is no atomic. */
static inline __attribute__((always_inline)) int hummock_proxy_try_malloc(hummock_proxy_t* proxy,
                                                                          size_t bytes, size_t alignment,
                                                                          void** out) {
  const size_t last = bytes - 1; /* 0 bytes: beyond any table */
  if (HUMMOCK_PROXY_RARELY(last >= HUMMOCK_PROXY_DIRECT || alignment > HUMMOCK_PROXY_GRANULE)) return 0;
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(cache->serial != proxy->serial)) return 0;
  const size_t distance = proxy->bin_of[last / HUMMOCK_PROXY_SIZE_STEP];
  hummock_proxy_bin_t* bin = (hummock_proxy_bin_t*)((char*)cache->bins + distance);
  hummock_proxy_granule_t* top = bin->top - 1;
  const hummock_proxy_granule_t granule = *top;
  /* Marked although it stands here: two threads freed it at once, or it is the stopper. */
  if (HUMMOCK_PROXY_RARELY(proxy->marks[granule] != HUMMOCK_PROXY_MARK_NONE)) return 0;
  bin->top = top;
  *out = proxy->base + granule * HUMMOCK_PROXY_GRANULE;
  proxy->marks[granule] = HUMMOCK_PROXY_MARK_PLAIN;
  return 1;
}

/* The pointer is looked at before the cache: the other order costs a loop registers, and 8 % of its speed. */
static inline __attribute__((always_inline)) int hummock_proxy_try_free(hummock_proxy_t* proxy, void* block) {
  /* Rotated: what is not aligned is beyond all pools, too. */
  const size_t offset = (size_t)((char*)block - proxy->base);
  const size_t granule =
      offset >> HUMMOCK_PROXY_GRANULE_LOG2 | offset << (sizeof offset * 8 - HUMMOCK_PROXY_GRANULE_LOG2);
  /* By arithmetic, not from the mark, which may come late. */
  const size_t bucket = granule >> (proxy->shift & 63);
  if (HUMMOCK_PROXY_RARELY(bucket >= HUMMOCK_PROXY_MOST_BUCKETS)) return 0;
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(cache->serial != proxy->serial)) return 0;
  hummock_proxy_bin_t* bin = &cache->bins[bucket];
  hummock_proxy_granule_t* top = bin->top;
  hummock_proxy_mark_t* mark = &proxy->marks[granule];
  /* In this order: where there is no bucket there are no marks, but a full bin. */
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
