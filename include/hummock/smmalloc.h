/* smmalloc's interface over Hummock's proxy allocator: a program written for smmalloc compiles unchanged with
 * #include <smmalloc.h>, and links with hummock.
 *
 * Differences from the original: each cache belongs to one allocator and ends with its thread; memory is
 * touched when it is used, not when the allocator is created; a block that is freed twice is reported, not
 * handed out twice; sizes that overflow give NULL; realloc returns memory and keeps the alignment; a foreign
 * pointer goes to the fallback, and the memory before it is not read. docs/embedding.md says more.
 *
 * Macros that a program may define before this header, the same in all its files:
 *   SMMALLOC_STATS_SUPPORT   keep statistics; each call costs more
 *   SMM_LINEAR_PARTITIONING, SMM_FLOAT_PARTITIONING   other element sizes, see hummock/proxy.h
 *   SMM_MAX_BUCKET_COUNT     the most buckets of an allocator, at most 62
 *   SM_ASSERT(condition) */
#ifndef HUMMOCK_SMMALLOC_H
#define HUMMOCK_SMMALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <new>

#if __has_include("hummock/proxy_inline.h")
#include "hummock/proxy_inline.h"
#else
#include "proxy_inline.h"
#endif

#ifndef SMM_CACHE_LINE_SIZE
#define SMM_CACHE_LINE_SIZE (64)
#endif
#ifndef SMM_MAX_BUCKET_COUNT
#define SMM_MAX_BUCKET_COUNT (62)
#endif
#ifndef SMM_MAX_CACHE_ITEMS_COUNT
#define SMM_MAX_CACHE_ITEMS_COUNT (7) /* has no effect: a cache holds what it is created for */
#endif
#ifndef SM_ASSERT
#define SM_ASSERT(condition) ((void)0)
#endif
#ifndef SMMALLOC_API
#define SMMALLOC_API
#endif
#ifndef SMMALLOC_UNUSED
#define SMMALLOC_UNUSED(name) ((void)(name))
#endif

namespace sm {

#if defined(SMM_LINEAR_PARTITIONING)
constexpr hummock_proxy_sizes_t kPartitioning = HUMMOCK_PROXY_LINEAR;
#elif defined(SMM_FLOAT_PARTITIONING)
constexpr hummock_proxy_sizes_t kPartitioning = HUMMOCK_PROXY_FLOAT;
#else
constexpr hummock_proxy_sizes_t kPartitioning = HUMMOCK_PROXY_STEPS;
#endif

/* How many elements a new thread cache begins with: none, half of what it may hold, all. */
enum CacheWarmupOptions { CACHE_COLD = 0, CACHE_WARM = 1, CACHE_HOT = 2 };

/* `alignment` is a power of two. */
inline bool IsAligned(size_t value, size_t alignment) {
  return (value & (alignment - 1)) == 0;
}
inline size_t Align(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
template <typename T>
inline T Min(T a, T b) {
  return a < b ? a : b;
}

/* The first bucket with elements of at least `bytesCount`, and the size of a bucket's elements. */
inline size_t GetBucketIndexBySize(size_t bytesCount) {
  return hummock_proxy_index_for(kPartitioning, bytesCount);
}
inline size_t GetBucketSizeInBytesByIndex(size_t bucketIndex) {
  return hummock_proxy_size_at(kPartitioning, bucketIndex);
}

/* The allocator behind the pools. A program replaces it by defining all of these functions in one of its own
 * files. Without that, hummock's are used, which call the process's malloc. Block sizes are in bytes, and
 * GetUsableSpace returns the size asked for. */
struct GenericAllocator {
  typedef void* TInstance;

  static TInstance Invalid() __asm__("hummock_smmalloc_invalid");
  static bool IsValid(TInstance instance) __asm__("hummock_smmalloc_is_valid");
  static TInstance Create() __asm__("hummock_smmalloc_create");
  static void Destroy(TInstance instance) __asm__("hummock_smmalloc_destroy");
  static void* Alloc(TInstance instance, size_t bytesCount,
                     size_t alignment) __asm__("hummock_smmalloc_alloc");
  static void Free(TInstance instance, void* p) __asm__("hummock_smmalloc_free");
  static void* Realloc(TInstance instance, void* p, size_t bytesCount,
                       size_t alignment) __asm__("hummock_smmalloc_realloc");
  static size_t GetUsableSpace(TInstance instance, void* p) __asm__("hummock_smmalloc_usable_space");

  /* For std::unique_ptr over blocks of an instance. */
  struct Deleter {
    explicit Deleter(TInstance owner) : instance(owner) {}
    template <typename T>
    void operator()(T* p) {
      GenericAllocator::Free(instance, p);
    }
    TInstance instance;
  };
};

#ifdef SMMALLOC_STATS_SUPPORT
/* The figures of hummock_proxy_stats and hummock_proxy_bucket_stats. */
struct GlobalStats {
  std::atomic<size_t> totalNumAllocationAttempts{0};
  std::atomic<size_t> totalAllocationsServed{0};
  std::atomic<size_t> totalAllocationsRoutedToDefaultAllocator{0};
  std::atomic<size_t> routingReasonBySize{0};
  std::atomic<size_t> routingReasonSaturation{0};
};
struct BucketStats {
  std::atomic<size_t> cacheHitCount{0};
  std::atomic<size_t> hitCount{0};
  std::atomic<size_t> missCount{0};
  std::atomic<size_t> freeCount{0};
};
#endif

/* One allocator; the functions are those of hummock/proxy.h. Before Init, or if Init found no memory, every
 * call goes to the generic allocator. */
class Allocator {
 public:
  static const size_t kMinValidAlignment = 4;

  explicit Allocator(GenericAllocator::TInstance instance)
      : instance_(instance), unmade_{{}, {allocate, release, reallocate, usable_size, instance}} {}
  ~Allocator() {
    if (IsInitialised()) hummock_proxy_destroy(proxy_);
  }
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /* Call it once, before anything else. */
  void Init(uint32_t bucketsCount, size_t bucketSizeInBytes) {
    SM_ASSERT(!IsInitialised());
    if (IsInitialised()) return;
    hummock_proxy_options_t options = {};
    options.size = sizeof options;
    options.bucket_count = Min<uint32_t>(bucketsCount, SMM_MAX_BUCKET_COUNT);
    options.sizes = kPartitioning;
    options.bucket_bytes = bucketSizeInBytes;
#ifdef SMMALLOC_STATS_SUPPORT
    options.count_calls = 1;
#endif
    options.fallback = &unmade_.fallback;
    if (hummock_proxy_t* proxy = hummock_proxy_create(&options)) proxy_ = proxy;
  }
  bool IsInitialised() const {
    return proxy_ != &unmade_.head;
  }

  void CreateThreadCache(CacheWarmupOptions warmupOptions, std::initializer_list<uint32_t> options) {
    if (!IsInitialised()) return;
    hummock_proxy_thread_cache_create(proxy_, static_cast<hummock_proxy_warmup_t>(warmupOptions),
                                      options.begin(), options.size());
  }
  void DestroyThreadCache() {
    if (IsInitialised()) hummock_proxy_thread_cache_destroy(proxy_);
  }

  void* Alloc(size_t bytesCount, size_t alignment) {
    return hummock_proxy_malloc_inline(proxy_, bytesCount, alignment);
  }
  void Free(void* p) {
    hummock_proxy_free_inline(proxy_, p);
  }
  void* Realloc(void* p, size_t bytesCount, size_t alignment) {
    if (!IsInitialised()) return GenericAllocator::Realloc(instance_, p, bytesCount, alignment);
    return hummock_proxy_realloc(proxy_, p, bytesCount, alignment);
  }
  size_t GetUsableSize(void* p) {
    if (!IsInitialised()) return p == nullptr ? 0 : GenericAllocator::GetUsableSpace(instance_, p);
    return hummock_proxy_usable_size(proxy_, p);
  }

  /* The bucket of the element that p points to or into, -1 outside the pools. */
  int32_t GetBucketIndex(const void* p) const {
    return !IsInitialised() ? -1 : hummock_proxy_bucket_of(proxy_, p);
  }
  bool IsMyAlloc(const void* p) const {
    return GetBucketIndex(p) >= 0;
  }
  size_t GetBucketsCount() const {
    return !IsInitialised() ? 0 : hummock_proxy_bucket_count(proxy_);
  }
  uint32_t GetBucketElementsCount(size_t bucketIndex) const {
    return !IsInitialised() ? 0 : hummock_proxy_bucket_elements(proxy_, bucketIndex);
  }
  GenericAllocator::TInstance GetGenericAllocatorInstance() {
    return instance_;
  }

#ifdef SMMALLOC_STATS_SUPPORT
  /* The figures at this call; the next call updates what it returned. */
  const GlobalStats& GetGlobalStats() const {
    hummock_proxy_stats_t now = {};
    if (IsInitialised()) hummock_proxy_stats(proxy_, &now);
    global_.totalNumAllocationAttempts = now.attempts;
    global_.totalAllocationsServed = now.served;
    global_.totalAllocationsRoutedToDefaultAllocator = now.fallback;
    global_.routingReasonBySize = now.by_size;
    global_.routingReasonSaturation = now.by_saturation;
    return global_;
  }
  /* NULL if there is no such bucket. */
  const BucketStats* GetBucketStats(size_t bucketIndex) const {
    hummock_proxy_bucket_stats_t now = {};
    if (!IsInitialised() || hummock_proxy_bucket_stats(proxy_, bucketIndex, &now) != 0) return nullptr;
    BucketStats& out = buckets_[bucketIndex];
    out.cacheHitCount = now.cache_hits;
    out.hitCount = now.hits;
    out.missCount = now.misses;
    out.freeCount = now.frees;
    return &out;
  }
#endif

 private:
  static void* allocate(void* instance, size_t bytes, size_t alignment) {
    return GenericAllocator::Alloc(instance, bytes, alignment);
  }
  static void release(void* instance, void* p) {
    GenericAllocator::Free(instance, p);
  }
  static void* reallocate(void* instance, void* p, size_t bytes, size_t alignment) {
    return GenericAllocator::Realloc(instance, p, bytes, alignment);
  }
  static size_t usable_size(void* instance, void* p) {
    return GenericAllocator::GetUsableSpace(instance, p);
  }

  hummock_proxy_t* proxy_ = &unmade_.head;
  GenericAllocator::TInstance instance_;
  /* In place of NULL, which each call would have to check. */
  hummock_proxy_unmade_t unmade_;
#ifdef SMMALLOC_STATS_SUPPORT
  mutable GlobalStats global_;
  mutable BucketStats buckets_[HUMMOCK_PROXY_MOST_BUCKETS];
#endif
};

}  // namespace sm

typedef sm::Allocator* sm_allocator;

SMMALLOC_API inline void _sm_allocator_destroy(sm_allocator allocator) {
  if (allocator == nullptr) return;
  const sm::GenericAllocator::TInstance instance = allocator->GetGenericAllocatorInstance();
  allocator->~Allocator();
  sm::GenericAllocator::Free(instance, allocator);
  sm::GenericAllocator::Destroy(instance);
}

/* NULL if there is no memory, or the generic allocator has no instance. */
SMMALLOC_API inline sm_allocator _sm_allocator_create(uint32_t bucketsCount, size_t bucketSizeInBytes) {
  const sm::GenericAllocator::TInstance instance = sm::GenericAllocator::Create();
  if (!sm::GenericAllocator::IsValid(instance)) return nullptr;
  void* place = sm::GenericAllocator::Alloc(instance, sizeof(sm::Allocator), SMM_CACHE_LINE_SIZE);
  if (place == nullptr) {
    sm::GenericAllocator::Destroy(instance);
    return nullptr;
  }
  sm_allocator allocator = new (place) sm::Allocator(instance);
  allocator->Init(bucketsCount, bucketSizeInBytes);
  if (allocator->IsInitialised()) return allocator;
  _sm_allocator_destroy(allocator);
  return nullptr;
}

/* The cache of the calling thread; a NULL allocator is ignored. */
SMMALLOC_API inline void _sm_allocator_thread_cache_create(sm_allocator allocator,
                                                           sm::CacheWarmupOptions warmupOptions,
                                                           std::initializer_list<uint32_t> options) {
  if (allocator != nullptr) allocator->CreateThreadCache(warmupOptions, options);
}
SMMALLOC_API inline void _sm_allocator_thread_cache_destroy(sm_allocator allocator) {
  if (allocator != nullptr) allocator->DestroyThreadCache();
}

SMMALLOC_API inline void* _sm_malloc(sm_allocator allocator, size_t bytesCount, size_t alignment) {
  return allocator->Alloc(bytesCount, alignment);
}
SMMALLOC_API inline void _sm_free(sm_allocator allocator, void* p) {
  allocator->Free(p);
}
SMMALLOC_API inline void* _sm_realloc(sm_allocator allocator, void* p, size_t bytesCount, size_t alignment) {
  return allocator->Realloc(p, bytesCount, alignment);
}
SMMALLOC_API inline size_t _sm_msize(sm_allocator allocator, void* p) {
  return allocator->GetUsableSize(p);
}
SMMALLOC_API inline int32_t _sm_mbucket(sm_allocator allocator, void* p) {
  return allocator->GetBucketIndex(p);
}

#endif /* HUMMOCK_SMMALLOC_H */
