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
  HUMMOCK_PROXY_DIRECT = 1024,    /* sizes up to this find their bin in a table */
  HUMMOCK_PROXY_SIZE_STEP = 4,    /* all element sizes are multiples of this */
  HUMMOCK_PROXY_GRANULE = 16,     /* no element is smaller; what the inline calls hand out is aligned so */
  HUMMOCK_PROXY_MARK_NONE = 0,    /* of a granule: no element begins there that is handed out */
  HUMMOCK_PROXY_MARK_PLAIN = 1,   /* one does */
  HUMMOCK_PROXY_MARK_SPECIAL = 2, /* one does, of a bucket whose calls are never inline */
};

/* What a thread has at hand of one bucket: the blocks from `items` to `top`, of which the last goes first. */
typedef struct hummock_proxy_bin {
  void** items;
  void** top;
  void** limit;
  size_t capacity;
} hummock_proxy_bin_t;

/* A thread's cache for a proxy, as far as the inline calls know it. */
typedef struct hummock_proxy_cache {
  const hummock_proxy_t* proxy;
  struct hummock_proxy_cache* next; /* the library's lists */
  struct hummock_proxy_cache* prev;
  struct hummock_proxy_cache** place;
  hummock_proxy_bin_t bins[HUMMOCK_PROXY_MOST_BUCKETS + 1]; /* the last is ever empty */
} hummock_proxy_cache_t;

/* A proxy, as far as the inline calls know it. Its pools stand at distances of 2^shift from `base`. */
struct hummock_proxy {
  char* base;
  size_t span;     /* of all pools */
  uintptr_t marks; /* address of the mark of granule 0 of the address space */
  uint32_t shift;
  uint32_t direct_size; /* the largest size that `bin_of` knows */
  uint8_t bin_of[HUMMOCK_PROXY_DIRECT / HUMMOCK_PROXY_SIZE_STEP];
};

/* The calling thread's cache that was used last; one of no proxy when there is none. */
extern HUMMOCK_EXPORT __thread hummock_proxy_cache_t* hummock_proxy_last_cache
    __attribute__((tls_model("initial-exec")));

/* The library's, for what the inline calls leave. */
HUMMOCK_EXPORT void* hummock_proxy_malloc_slow(hummock_proxy_t* proxy, size_t bytes,
                                               size_t alignment) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_proxy_free_slow(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

#define HUMMOCK_PROXY_RARELY(condition) __builtin_expect((condition), 0)

/* The cache's `proxy` is read as an atomic, relaxed, as another thread clears it when it destroys that proxy:
 * no more than a comparison with proxies still in use hangs on it.
 *
 * Who hands an element out or frees it owns it, and it passes from thread to thread by the program's own
 * synchronisation or the library's: so its mark is no atomic. */
static inline __attribute__((always_inline)) uint8_t* hummock_proxy_mark_at(const hummock_proxy_t* proxy,
                                                                            const void* block) {
  return (uint8_t*)(proxy->marks + (uintptr_t)block / HUMMOCK_PROXY_GRANULE);
}

static inline __attribute__((always_inline)) void* hummock_proxy_malloc_inline(hummock_proxy_t* proxy,
                                                                               size_t bytes,
                                                                               size_t alignment) {
  const size_t last = bytes - 1; /* 0 bytes: beyond any limit */
  if (HUMMOCK_PROXY_RARELY(last >= proxy->direct_size || alignment > HUMMOCK_PROXY_GRANULE))
    return hummock_proxy_malloc_slow(proxy, bytes, alignment);
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(__atomic_load_n(&cache->proxy, __ATOMIC_RELAXED) != proxy))
    return hummock_proxy_malloc_slow(proxy, bytes, alignment);
  hummock_proxy_bin_t* bin = &cache->bins[proxy->bin_of[last / HUMMOCK_PROXY_SIZE_STEP]];
  void** top = bin->top;
  if (HUMMOCK_PROXY_RARELY(top == bin->items)) return hummock_proxy_malloc_slow(proxy, bytes, alignment);
  void* block = *--top;
  uint8_t* mark = hummock_proxy_mark_at(proxy, block);
  /* Marked although it stands here: two threads freed it at once. */
  if (HUMMOCK_PROXY_RARELY(*mark != HUMMOCK_PROXY_MARK_NONE))
    return hummock_proxy_malloc_slow(proxy, bytes, alignment);
  *mark = HUMMOCK_PROXY_MARK_PLAIN;
  bin->top = top;
  return block;
}

static inline __attribute__((always_inline)) void hummock_proxy_free_inline(hummock_proxy_t* proxy,
                                                                            void* block) {
  const uintptr_t address = (uintptr_t)block;
  const size_t offset = address - (uintptr_t)proxy->base;
  if (HUMMOCK_PROXY_RARELY(offset >= proxy->span || address % HUMMOCK_PROXY_GRANULE != 0)) {
    hummock_proxy_free_slow(proxy, block);
    return;
  }
  hummock_proxy_cache_t* cache = hummock_proxy_last_cache;
  if (HUMMOCK_PROXY_RARELY(__atomic_load_n(&cache->proxy, __ATOMIC_RELAXED) != proxy)) {
    hummock_proxy_free_slow(proxy, block);
    return;
  }
  /* By arithmetic, not from the mark, which may come late. */
  hummock_proxy_bin_t* bin = &cache->bins[offset >> (proxy->shift & 63)];
  void** top = bin->top;
  uint8_t* mark = hummock_proxy_mark_at(proxy, block);
  if (HUMMOCK_PROXY_RARELY(top == bin->limit || *mark != HUMMOCK_PROXY_MARK_PLAIN)) {
    hummock_proxy_free_slow(proxy, block);
    return;
  }
  *mark = HUMMOCK_PROXY_MARK_NONE;
  *top = block;
  bin->top = top + 1;
}

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_PROXY_INLINE_H */
