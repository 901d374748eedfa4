/* The proxy allocator: pools of fixed size for small blocks, before an allocator of yours.
 *
 * A *proxy* has up to 62 *buckets*, each a pool of *elements* of one size. How many elements a bucket has
 * is fixed when the proxy is created, and exactly that many can be handed out. A request is served by the
 * first bucket whose elements are large enough and suit the alignment; when that is full, by one of up to
 * three larger ones; else by the *fallback*, as is every request too large for all buckets.
 *
 * A thread may have a *thread cache* for a proxy: elements kept at hand, so that most calls touch nothing
 * shared. Without one each call costs one atomic exchange. There is no lock on either path.
 *
 * Address space is reserved when a proxy is created, memory comes when an element is first used. What the
 * proxy notes of its elements stands apart from them: a byte for each 16, and four for each element that
 * was freed without a cache.
 *
 * Every function may be called from any thread; a proxy is destroyed when nobody uses it any more. None is
 * async-signal-safe. `proxy` is never NULL, unless a function says otherwise. Sizes are in bytes. */
#ifndef HUMMOCK_PROXY_H
#define HUMMOCK_PROXY_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HUMMOCK_PROXY_MOST_BUCKETS 62

typedef struct hummock_proxy hummock_proxy_t;

/* What serves the requests that the pools do not. All four functions are needed. `alignment` is a power of
 * two. `release` and `reallocate` also get every pointer that is not in the proxy's pools, whoever made
 * it; the proxy itself never reads through or before such a pointer. */
typedef struct hummock_proxy_fallback {
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*release)(void* context, void* block);
  void* (*reallocate)(void* context, void* block, size_t bytes, size_t alignment); /* bytes ≠ 0 */
  size_t (*usable_size)(void* context, void* block); /* bytes the caller may use */
  void* context;
} hummock_proxy_fallback_t;

/* The sizes of the elements, by the bucket's index. */
typedef uint32_t hummock_proxy_sizes_t;
enum {
  HUMMOCK_PROXY_STEPS = 0,  /* to 128 in steps of 16, to 1,024 in steps of 128, to 25,088 in steps of 512 */
  HUMMOCK_PROXY_LINEAR = 1, /* to 992 in steps of 16 */
  HUMMOCK_PROXY_FLOAT = 2   /* four to each doubling: 16, 20, 24, 28, 32, 40 … 655,360 */
};

typedef struct hummock_proxy_options {
  size_t size;           /* in: sizeof(hummock_proxy_options_t) of the caller */
  uint32_t bucket_count; /* more than 62 counts as 62 */
  hummock_proxy_sizes_t sizes;
  size_t bucket_bytes;                      /* of each pool; rounded up to a multiple of 4,096 */
  int count_calls;                          /* not 0: statistics are kept, and each call costs more */
  const hummock_proxy_fallback_t* fallback; /* is copied. NULL: the process's malloc, see below */
  /* Told of misuse: a block freed twice, or a pointer into the pools where no block is live. When it
   * returns, the call does nothing more. NULL: one line on standard error, then abort. */
  void (*misuse)(void* context, const char* what, const void* block);
  void* misuse_context;
} hummock_proxy_options_t;

/* The size of the elements of bucket `index` (< 62), and the first bucket with elements of at least `bytes`
 * (62 or more when there is none). Pure. */
static inline size_t hummock_proxy_size_at(hummock_proxy_sizes_t sizes, size_t index) {
  if (sizes == HUMMOCK_PROXY_FLOAT) return (size_t)(4 + index % 4) << (2 + index / 4);
  if (sizes == HUMMOCK_PROXY_LINEAR || index < 8) return 16 * (index + 1);
  if (index < 15) return 128 * (index - 6);
  return 512 * (index - 12);
}
static inline size_t hummock_proxy_index_for(hummock_proxy_sizes_t sizes, size_t bytes) {
  const size_t last = bytes == 0 ? 0 : bytes - 1; /* the last byte's offset */
  if (sizes == HUMMOCK_PROXY_FLOAT) {
    size_t log2 = 4;
    if (last < 16) return 0;
    while (last >> log2 > 1) ++log2;
    return (log2 - 4) * 4 + ((last >> (log2 - 2)) & 3) + 1;
  }
  if (sizes == HUMMOCK_PROXY_LINEAR || last < 128) return last / 16;
  if (last < 1024) return last / 128 + 7;
  return last / 512 + 13;
}

/* A new proxy. NULL with errno = ENOMEM when there is no room for the pools, EINVAL for options that are
 * not as described. Reserves address space of each pool rounded up to a power of two. */
HUMMOCK_EXPORT hummock_proxy_t* hummock_proxy_create(const hummock_proxy_options_t* options) HUMMOCK_NOEXCEPT;

/* Ends the proxy and every thread's cache for it; blocks in its pools are gone, blocks of the fallback stay.
 * NULL does nothing. */
HUMMOCK_EXPORT void hummock_proxy_destroy(hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;

/* How many elements a new thread cache has at hand. They are taken from the proxy, not touched. */
typedef uint32_t hummock_proxy_warmup_t;
enum {
  HUMMOCK_PROXY_COLD = 0, /* none */
  HUMMOCK_PROXY_WARM = 1, /* half of what it may hold */
  HUMMOCK_PROXY_HOT = 2   /* all it may hold, or what is left */
};

/* Gives the calling thread a cache that holds up to `most[i]` elements of bucket i < `count`, and none of
 * the others. One that is there already is given back first. 0, or ENOMEM, EINVAL, or EAGAIN when the
 * process has used up its thread keys, or has more than 1,024 proxies (further ones work without caches).
 * A thread that ends gives its caches back by itself. Cost: a system call. */
HUMMOCK_EXPORT int hummock_proxy_thread_cache_create(hummock_proxy_t* proxy, hummock_proxy_warmup_t warmup,
                                                     const uint32_t* most, size_t count) HUMMOCK_NOEXCEPT;
/* Gives all elements of the calling thread's cache back, and the cache. Without a cache it does nothing. */
HUMMOCK_EXPORT void hummock_proxy_thread_cache_destroy(hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;

/* A block of at least `bytes`, aligned to `alignment` (rounded up to a power of two; 0 counts as 1). Elements
 * are aligned to at most 4,096: more goes to the fallback. 0 bytes: a small pointer, not NULL, that is no
 * block; freeing it does nothing. Sizes above PTRDIFF_MAX: NULL with errno = ENOMEM.
 * Cost: under 40 instructions from the thread's cache. */
HUMMOCK_EXPORT void* hummock_proxy_malloc(hummock_proxy_t* proxy, size_t bytes,
                                          size_t alignment) HUMMOCK_NOEXCEPT;

/* Ends the life of `block`. NULL does nothing; a pointer outside the pools goes to the fallback. A block
 * that is freed twice is never handed out twice: see `misuse`. Keeps errno.
 * Cost: under 40 instructions into the thread's cache. */
HUMMOCK_EXPORT void hummock_proxy_free(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

/* Resizes: bytes = 0 frees and returns NULL; block = NULL is malloc. A block stays where it is when it is
 * large enough, suits the alignment, and the size asked for needs more than four fifths of it; else it moves,
 * to a smaller element too. On failure: NULL, the block untouched. */
HUMMOCK_EXPORT void* hummock_proxy_realloc(hummock_proxy_t* proxy, void* block, size_t bytes,
                                           size_t alignment) HUMMOCK_NOEXCEPT;

/* The element's size of a block in the pools, what the fallback says of any other; 0 for NULL and for what
 * malloc of 0 bytes gave. */
HUMMOCK_EXPORT size_t hummock_proxy_usable_size(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

/* The bucket of the element that `address` points into, -1 when there is none. Never reads memory there. */
HUMMOCK_EXPORT int32_t hummock_proxy_bucket_of(const hummock_proxy_t* proxy,
                                               const void* address) HUMMOCK_NOEXCEPT;

/* Buckets, and elements of a bucket: as many as its pool has whole room for (0 beyond the last bucket). */
HUMMOCK_EXPORT uint32_t hummock_proxy_bucket_count(const hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT uint32_t hummock_proxy_bucket_elements(const hummock_proxy_t* proxy,
                                                      size_t index) HUMMOCK_NOEXCEPT;

/* Calls so far, of a proxy that counts them. */
typedef struct hummock_proxy_stats {
  size_t attempts;      /* requests but those of 0 bytes */
  size_t served;        /* by the pools */
  size_t fallback;      /* by the fallback */
  size_t by_size;       /* of these: too large, or aligned to more than 4,096 */
  size_t by_saturation; /* of these: the buckets were full */
} hummock_proxy_stats_t;
typedef struct hummock_proxy_bucket_stats {
  size_t cache_hits; /* served from a thread's cache */
  size_t hits;       /* served from the shared pool */
  size_t misses;     /* found full */
  size_t frees;
} hummock_proxy_bucket_stats_t;

/* 0, or EINVAL for a proxy that does not count, or a bucket it does not have. */
HUMMOCK_EXPORT int hummock_proxy_stats(const hummock_proxy_t* proxy,
                                       hummock_proxy_stats_t* out) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_proxy_bucket_stats(const hummock_proxy_t* proxy, size_t index,
                                              hummock_proxy_bucket_stats_t* out) HUMMOCK_NOEXCEPT;

/* The fallback of a proxy that names none: the process's malloc, realloc and free, for any alignment. The
 * usable size of its blocks is the size asked for, of other blocks what malloc_usable_size says. */
HUMMOCK_EXPORT void* hummock_proxy_default_allocate(void* context, size_t bytes,
                                                    size_t alignment) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_proxy_default_release(void* context, void* block) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_proxy_default_reallocate(void* context, void* block, size_t bytes,
                                                      size_t alignment) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT size_t hummock_proxy_default_usable_size(void* context, void* block) HUMMOCK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_PROXY_H */
