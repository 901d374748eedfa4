/* The proxy allocator: pools of fixed size for small blocks, in front of your own allocator.
 *
 * A *proxy* has up to 62 *buckets*. Each is a pool of *elements* of one size, whose number is fixed when the
 * proxy is created. The first bucket whose elements are large enough and suit the alignment serves a request.
 * When it is full, one of up to three larger ones does, or else the *fallback*. The fallback also serves
 * requests that are too large for all buckets.
 *
 * A thread may have a *thread cache* for a proxy: elements that it keeps at hand, so that most calls touch
 * nothing shared. Without a cache each call costs one atomic exchange. Neither path takes a lock.
 *
 * A proxy reserves address space when it is created; memory comes when an element is first used. The proxy's
 * own data is apart from the elements: a byte for each 16 bytes, and four bytes for each element that was
 * freed without a cache.
 *
 * Any thread may call any function; destroy a proxy when nobody uses it any more. None is async-signal-safe.
 * `proxy` must not be NULL unless a function says otherwise. Sizes are in bytes. */
#ifndef HUMMOCK_PROXY_H
#define HUMMOCK_PROXY_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HUMMOCK_PROXY_MOST_BUCKETS 62

typedef struct hummock_proxy hummock_proxy_t;

/* The allocator behind the pools. All four functions are needed. `alignment` is a power of two. `release` and
 * `reallocate` also get every pointer that is not in the proxy's pools, whoever made it; the proxy itself
 * never reads through or before such a pointer. */
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
  int count_calls;                          /* not 0: count calls; each call then costs more */
  const hummock_proxy_fallback_t* fallback; /* copied. NULL: the process's malloc, see below */
  /* Called for misuse: a block freed twice, or a pointer into the pools where no block is live. When it
   * returns, the call does nothing more. NULL: print one line on standard error, then abort. */
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

/* Creates a proxy. Returns NULL with errno = ENOMEM when there is no room for the pools, or EINVAL for
 * options that are not as described. Reserves address space for each pool, rounded up to a power of two. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD hummock_proxy_t* hummock_proxy_create(const hummock_proxy_options_t* options)
    HUMMOCK_NOEXCEPT;

/* Destroys the proxy, every thread's cache for it, and the blocks in its pools. Blocks of the fallback stay.
 * NULL does nothing. */
HUMMOCK_EXPORT void hummock_proxy_destroy(hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;

/* How many elements a new thread cache begins with. It takes them from the proxy and does not touch them. */
typedef uint32_t hummock_proxy_warmup_t;
enum {
  HUMMOCK_PROXY_COLD = 0, /* none */
  HUMMOCK_PROXY_WARM = 1, /* half of what it may hold */
  HUMMOCK_PROXY_HOT = 2   /* all it may hold, or what is left */
};

/* Gives the calling thread a cache that holds up to `most[i]` elements of bucket i < `count`, and none of the
 * others. A cache that the thread has already goes back first. Returns 0, ENOMEM, EINVAL, or EAGAIN when the
 * process has used up its thread keys or has more than 1,024 proxies (further ones work without caches). A
 * thread that ends returns its caches. Cost: a system call. */
HUMMOCK_EXPORT int hummock_proxy_thread_cache_create(hummock_proxy_t* proxy, hummock_proxy_warmup_t warmup,
                                                     const uint32_t* most, size_t count) HUMMOCK_NOEXCEPT;
/* Returns the calling thread's cache with all its elements. Does nothing without a cache. */
HUMMOCK_EXPORT void hummock_proxy_thread_cache_destroy(hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;

/* Returns a block of at least `bytes`, aligned to `alignment` (rounded up to a power of two; 0 counts as 1).
 * Elements are aligned to at most 4,096; larger alignments go to the fallback. For 0 bytes it returns a small
 * pointer that is neither NULL nor a block; freeing it does nothing. For sizes above PTRDIFF_MAX it returns
 * NULL with errno = ENOMEM. Cost: under 40 instructions from the thread's cache. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(2) void* hummock_proxy_malloc(
    hummock_proxy_t* proxy, size_t bytes, size_t alignment) HUMMOCK_NOEXCEPT;

/* Frees `block`. NULL does nothing; a pointer outside the pools goes to the fallback. A block that is freed
 * twice is never handed out twice: see `misuse`. Leaves errno as it is. Cost: under 40 instructions into the
 * thread's cache. */
HUMMOCK_EXPORT void hummock_proxy_free(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

/* Resizes: bytes = 0 frees and returns NULL; block = NULL is malloc. A block stays where it is if it is large
 * enough, suits the alignment, and the new size needs more than four fifths of it. Otherwise it moves, also
 * to a smaller element. On failure it returns NULL and leaves the block untouched. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(3) void* hummock_proxy_realloc(
    hummock_proxy_t* proxy, void* block, size_t bytes, size_t alignment) HUMMOCK_NOEXCEPT;

/* The element's size for a block in the pools, and for any other what the fallback says; 0 for NULL and for
 * the pointer that malloc of 0 bytes returned. */
HUMMOCK_EXPORT size_t hummock_proxy_usable_size(hummock_proxy_t* proxy, void* block) HUMMOCK_NOEXCEPT;

/* The bucket whose element `address` points into, -1 when there is none. Never reads memory there. */
HUMMOCK_EXPORT int32_t hummock_proxy_bucket_of(const hummock_proxy_t* proxy,
                                               const void* address) HUMMOCK_NOEXCEPT;

/* The number of buckets, and of elements in one: as many as fit whole into its pool (0 beyond the last). */
HUMMOCK_EXPORT uint32_t hummock_proxy_bucket_count(const hummock_proxy_t* proxy) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT uint32_t hummock_proxy_bucket_elements(const hummock_proxy_t* proxy,
                                                      size_t index) HUMMOCK_NOEXCEPT;

/* The calls so far of a proxy that counts them. */
typedef struct hummock_proxy_stats {
  size_t attempts;      /* requests, except those of 0 bytes, and those refused for size or alignment */
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

/* Return 0, or EINVAL for a proxy that does not count, or a bucket that it does not have. */
HUMMOCK_EXPORT int hummock_proxy_stats(const hummock_proxy_t* proxy,
                                       hummock_proxy_stats_t* out) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_proxy_bucket_stats(const hummock_proxy_t* proxy, size_t index,
                                              hummock_proxy_bucket_stats_t* out) HUMMOCK_NOEXCEPT;

/* The fallback of a proxy that names none: the process's malloc, realloc and free, for any alignment. The
 * usable size of its blocks is the size asked for; for other blocks it is what malloc_usable_size says. */
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
