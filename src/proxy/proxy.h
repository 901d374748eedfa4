// The proxy allocator's data: pools of elements of one size, and each thread's cache of them.
#ifndef HUMMOCK_PROXY_PROXY_H
#define HUMMOCK_PROXY_PROXY_H

#include <bit>

#include "hummock/proxy_inline.h"
#include "os/lock.h"

namespace hummock::proxy {

inline constexpr unsigned kBuckets = HUMMOCK_PROXY_MOST_BUCKETS;
inline constexpr size_t kPoolStep = 4096;  // pools are multiples of this, elements aligned to at most this
inline constexpr size_t kDirectSize = HUMMOCK_PROXY_DIRECT;
inline constexpr size_t kSizeStep = HUMMOCK_PROXY_SIZE_STEP;
inline constexpr size_t kGranule = HUMMOCK_PROXY_GRANULE;
inline constexpr unsigned kSlots = 1024;  // most proxies that threads can have caches for
inline constexpr unsigned kBatch = 64;    // most elements that go between cache and pool at once
inline constexpr uintptr_t kNoBlock =
    65536;  // nothing is mapped below this; malloc of 0 bytes returns such an address

// Counters of a proxy that counts its calls. Atomic, relaxed: they order nothing.
using Counts = hummock_proxy_stats_t;
using BucketCounts = hummock_proxy_bucket_stats_t;

// A pool. An element is in one place at a time: handed out, in a thread's cache, or here: fresh (never
// handed out: from `carved` on), returned (in the stack), or in a returned range.
struct Pool {
  // Written at creation only.
  char* base;
  uint64_t inverse;       // of the odd part of element_size, modulo 2^64
  uint32_t element_size;  // odd part × 2^twos
  uint32_t twos;
  uint32_t elements;
  hummock_proxy_mark_t mark;  // of its blocks
  uint32_t* links;            // of the elements in the stack, by index, so that freed blocks hold no links
  BucketCounts counts;

  // The stack of returned elements: index + 1 of the top, and above it a 32-bit count of changes, so that a
  // change shows even if another undoes it.
  alignas(64) uint64_t returned;
  // Elements from here on are fresh. Compared and exchanged, so that it never passes `elements`.
  alignas(64) uint32_t carved;
  // Index + 1 of the first range of fresh elements that a cache gave back; written under `registry`.
  uint32_t ranges;
};

using Bin = hummock_proxy_bin_t;

// Elements [first, end) that belong to a cache and were never used.
// Invariant: the bin's limit stands (end - first) before its capacity.
struct Fresh {
  uint32_t first;
  uint32_t end;
};

// Its list and `place`, where it stands in its thread's table, are guarded by `registry`. When its proxy ends
// before its thread, it stays, of no proxy, since the thread may have it at hand: it is the thread that
// unmaps it.
struct Proxy;
struct Table;
struct Cache : hummock_proxy_cache {
  Proxy* proxy;
  Table* table;
  Fresh fresh[kBuckets];
  size_t mapped;
};

// A thread's caches by the proxy's slot; the last place is never taken. A thread without any has a table
// of zeros. The cache that was used last is at hand, or one that is nobody's.
struct Table {
  hummock_proxy_cache_t* of[kSlots + 1];
  hummock_proxy_cache_t* orphans;  // of proxies that are no more. Guarded by `registry`.
};
extern Table no_caches;
extern hummock_proxy_cache_t no_cache;
extern __thread Table* thread_caches __attribute__((tls_model("initial-exec")));

// All but the counts and the list of caches is written at creation only.
struct Proxy : hummock_proxy {
  size_t granules;  // of all pools
  uint32_t buckets;
  uint32_t slot;  // in the threads' tables; kSlots: none
  hummock_proxy_sizes_t sizes;
  bool counting;
  hummock_proxy_fallback_t fallback;
  void (*misuse)(void* context, const char* what, const void* block);
  void* misuse_context;
  size_t mapped;                  // this record, all marks and links
  hummock_proxy_cache_t* caches;  // of all threads. Guarded by `registry`.
  Counts counts;
  Pool pools[kBuckets];
};

// Guards the slots, every proxy's list of caches, and ranges. Under it only the system is called.
extern os::Lock<os::Rank::proxies> registry;

inline hummock_proxy_mark_t* mark_at(const Proxy* proxy, const void* p) {
  return &proxy->marks[static_cast<size_t>(static_cast<const char*>(p) - proxy->base) / kGranule];
}

// ---- Bins: call put() only if there is room, take_out() only if it is not empty ---------------------

inline bool is_empty(const Bin& bin) {
  return bin.top == bin.items;
}
// Stores the number of the block's granule. For a block that is not aligned to a granule (in buckets that are
// never inline) the upper bits have the rest of its distance.
inline void put(const Proxy* proxy, Bin& bin, const void* block) {
  *bin.top++ = std::rotr(static_cast<size_t>(static_cast<const char*>(block) - proxy->base),
                         HUMMOCK_PROXY_GRANULE_LOG2);
}
inline void* take_out(const Proxy* proxy, Bin& bin) {
  return proxy->base + std::rotl(static_cast<size_t>(*--bin.top), HUMMOCK_PROXY_GRANULE_LOG2);
}

// The index of the element that begins at p, or a number beyond all elements if none does. It divides by a
// multiplication: a distance that is not a multiple of the odd part gives a quotient that is too large, and
// one that is not a multiple of the power of two is rotated to such a number.
inline uint64_t index_at(const Pool& pool, const void* p) {
  const auto offset = static_cast<uint64_t>(static_cast<const char*>(p) - pool.base);
  const uint64_t product = offset * pool.inverse;
  return product >> (pool.twos & 63) | product << (-pool.twos & 63);
}
inline char* element_at(const Pool& pool, uint32_t index) {
  return pool.base + uint64_t{index} * pool.element_size;
}

// ---- Between pools and caches (pool.cc) ----------------------------------------------------------

// Takes up to `most` ≤ kBatch elements, of which the last in `items` is to be used first. 0: the pool is
// empty.
unsigned take(Pool& pool, void** items, unsigned most);
void give(Pool& pool, void* const* items, unsigned count);
// Takes only fresh elements: [*first, *first + the result).
uint32_t take_fresh(Pool& pool, uint32_t most, uint32_t* first);
// Gives fresh elements back; only the first may have been touched. Under `registry`.
void give_range(Pool& pool, uint32_t first, uint32_t end);

// ---- Caches (cache.cc) ---------------------------------------------------------------------------

int create_cache(Proxy* proxy, hummock_proxy_warmup_t warmup, const uint32_t* most, size_t count);
void destroy_cache(Proxy* proxy);
// Drops all threads' caches of a proxy that ends.
void forget_caches(Proxy* proxy);
// The calling thread's cache, which becomes its last used one; null: it has none.
Cache* find_cache(const Proxy* proxy);
// Fills the empty bin of a bucket. False: the pool is empty.
bool refill(Cache* cache, uint32_t bucket);
// Makes room in the full bin of a bucket. False: it can have none.
bool make_room(Cache* cache, uint32_t bucket);

// ---- Calls that the fast path does not serve (allocate.cc, release.cc) ---------------------------

void* allocate_slow(Proxy* proxy, size_t bytes, size_t align);
void release_slow(Proxy* proxy, void* p);
void* reallocate(Proxy* proxy, void* p, size_t bytes, size_t align);
size_t usable_size(Proxy* proxy, void* p);
int32_t bucket_of(const Proxy* proxy, const void* address);

// Takes a block only from the buckets below `below`. `full`: the result is null because they are full.
void* take_pooled(Proxy* proxy, size_t bytes, size_t align, uint32_t below, bool* full);
void report(const Proxy* proxy, const char* what, const void* p);

// ---- Beginning and end (proxy.cc) ----------------------------------------------------------------

Proxy* create(const hummock_proxy_options_t& options);
void destroy(Proxy* proxy);

}  // namespace hummock::proxy

#endif  // HUMMOCK_PROXY_PROXY_H
