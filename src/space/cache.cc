// The blocks that a thread keeps at hand: malloc and free, and how a thread gets its cache. See
// cache_inside.h.
#include "space/cache.h"

#include "base/keep_errno.h"
#include "base/message.h"
#include "os/thread.h"
#include "space/cache_inside.h"

namespace hummock::space {
namespace {

[[noreturn]] __attribute__((noinline)) void bad_rest(const Space* space, uint64_t at) {
  base::die(
      base::Line() << "the block at " << payload(space->engine, at)
                   << " in a thread's cache of a space was freed twice, or written to after it was freed");
}

// The cache that the thread used last; null: it is at its end, and uses the pool. A serial never comes again,
// so the record of a space that is gone is not taken for another's.
struct Near {
  uint64_t serial;
  Cache* cache;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit Near near = {0, nullptr};

// ---- Inside a cache -------------------------------------------------------------------------------

// A resting block's second word names the cache that it rests in: two threads that free one block at once may
// both put it into a cache, and the one whose mark is gone when the block comes out is told. Only the cache's
// thread may write there, and not to the header, which the neighbour's freer may be changing.
uint64_t mark_of(uint64_t at) {
  return ~(at * 0xA0761D6478BD642Fu);
}

__attribute__((noinline)) bool is_record(const Engine* engine, uint64_t at) {
  if (at < engine->first || at >= figure(engine->end) || at % kGranule != engine->first % kGranule)
    return false;
  const uint64_t value = header(engine, at);
  return is_sealed(value, at) && alignment_code(value) == kOwnRecord && (value & kFree) == 0;
}

// A program's bytes there would have to lead to a cache.
__attribute__((always_inline)) inline bool rests(const Engine* engine, uint64_t at) {
  const uint64_t cache =
      __atomic_load_n(&word(const_cast<Engine*>(engine), at + kHeader), __ATOMIC_RELAXED) ^ mark_of(at);
  return __builtin_expect(cache < kMostBytes, false) && is_record(engine, cache);
}

__attribute__((always_inline)) inline void set_mark(Engine* engine, uint64_t at, uint64_t mark) {
  __atomic_store_n(&word(engine, at + kHeader), mark, __ATOMIC_RELAXED);
}

// `size` is the block's.
__attribute__((always_inline)) inline void push(Engine* engine, Cache* cache, unsigned bin, uint64_t at,
                                                uint64_t size) {
  word(engine, at) = cache->bins[bin].first;
  set_mark(engine, at, mark_of(at) ^ cache->at);
  cache->bins[bin].first = at;
  put(cache->bins[bin].count, cache->bins[bin].count + 1);
  put(cache->free_bytes, cache->free_bytes + size);
}

// The bin has one.
__attribute__((always_inline)) inline uint64_t pop(Engine* engine, Cache* cache, unsigned bin) {
  const uint64_t at = cache->bins[bin].first;
  const uint64_t mark = __atomic_load_n(&word(engine, at + kHeader), __ATOMIC_RELAXED);
  if (__builtin_expect(mark != (mark_of(at) ^ cache->at), false)) bad_rest(cache->space, at);
  cache->bins[bin].first = word(engine, at);
  put(cache->bins[bin].count, cache->bins[bin].count - 1);
  set_mark(engine, at, 0);
  put(cache->free_bytes, cache->free_bytes - size_in(header(engine, at)));
  return at;
}

// ---- Between a cache and the pool; inside both -----------------------------------------------------

void give_one_back(Cache* cache, unsigned bin) {
  Space* space = cache->space;
  const uint64_t at = pop(space->engine, cache, bin);
  forget_cached(space, at);
  give(space->engine, at);
}

// Blocks of a bin go back until `keep` are left.
void give_back(Cache* cache, unsigned bin, uint64_t keep) {
  while (cache->bins[bin].count > keep) give_one_back(cache, bin);
}

// ---- Caches come and go ----------------------------------------------------------------------------

void link(Space* space, Cache* cache) {
  Control* control = space->control;
  cache->next = control->caches;
  if (Cache* next = cache_at(space, cache->next)) next->prev = cache->at;
  put(control->caches, cache->at);
  control->own += size_in(header(space->engine, cache->at));
}

}  // namespace

void give_all_back(Cache* cache) {
  for (unsigned bin = 1; bin <= kCacheBins; ++bin) give_back(cache, bin, 0);
}

void drop_cache(Cache* cache) {
  Space* space = cache->space;
  give_all_back(cache);
  if (Cache* next = cache_at(space, cache->next)) next->prev = cache->prev;
  put(cache->prev == 0 ? space->control->caches : cache_at(space, cache->prev)->next, cache->next);
  space->control->own -= size_in(header(space->engine, cache->at));
  give(space->engine, cache->at);
}

namespace {

void end_of_thread(void* record) {
  Cache* cache = static_cast<Cache*>(record);
  Space* space = cache->space;
  // Blocks that the thread frees at its very end go to the pool: nobody would end another cache.
  near = {space->serial, nullptr};
  if (!enter(space)) return;
  drop_cache(cache);
  leave(space);
}

// Where the program did not choose, bins of longer blocks hold fewer.
uint32_t most_of(const Space* space, unsigned bin) {
  if (space->cache_room == 0) return space->cache_blocks;
  const uint64_t fit = space->cache_room / kCacheBins / block_size(size_t{bin} << space->cache_shift);
  return fit < 2 ? 2 : fit < space->cache_blocks ? static_cast<uint32_t>(fit) : space->cache_blocks;
}

// Null when memory is short.
Cache* make_cache(Space* space) {
  if (!enter(space)) return nullptr;
  Engine* engine = space->engine;
  const uint64_t size = block_size(sizeof(Cache));
  // Not from what a request may need.
  const bool is_short = largest_free(engine) < 2 * (size + block_size(space->cache_largest));
  const uint64_t at = is_short ? 0 : take(engine, size);
  Cache* cache = cache_at(space, at);
  if (cache != nullptr) {
    *cache = Cache{};
    cache->space = space;
    cache->at = at;
    for (unsigned bin = 1; bin <= kCacheBins; ++bin) cache->bins[bin].most = most_of(space, bin);
    set_header(engine, at, header(engine, at) | uint64_t{kOwnRecord} << kSizeBits);
    link(space, cache);
  }
  leave(space);
  return cache;
}

__attribute__((noinline)) Cache* find_cache(Space* space) {
  if (near.serial == space->serial) return near.cache;
  Cache* cache = static_cast<Cache*>(pthread_getspecific(space->cache_key));
  if (cache == nullptr) {
    // The space takes its memory with the first call that the pool serves.
    if (figure(space->control->pending) != 0) return nullptr;
    cache = make_cache(space);
    if (cache == nullptr) return nullptr;  // the next call tries again
    // First: setting the value may allocate.
    near = {space->serial, cache};
    if (pthread_setspecific(space->cache_key, cache) == 0) return cache;
    end_of_thread(cache);
    return nullptr;
  }
  near = {space->serial, cache};
  return cache;
}

// ---- What is rare ----------------------------------------------------------------------------------

// Takes half of what a bin may hold from the pool; the last of it is the caller's. 0: there is none.
uint64_t refill(Space* space, Cache* cache, unsigned bin) {
  Engine* engine = space->engine;
  const uint64_t size = block_size(size_t{bin} << space->cache_shift);
  const unsigned most = (cache->bins[bin].most + 1) / 2;
  if (!enter(space)) return 0;
  if (!begin(space, cache)) return leave(space), 0;
  uint64_t last = 0;
  for (unsigned i = 0; i < most; ++i) {
    const uint64_t at = take(engine, size);
    if (at == 0) break;
    const uint64_t value = header(engine, at) | kFromCache;
    set_header(engine, at, value);
    put(space->control->cached, space->control->cached + size_in(value));
    if (last != 0) push(engine, cache, bin, last, size_in(header(engine, last)));
    last = at;
  }
  // The caller's memory may hold the mark of a space that was there before.
  if (last != 0) set_mark(engine, last, 0);
  end(cache);
  leave(space);
  return last;
}

__attribute__((noinline)) void* allocate_refilled(Space* space, Cache* cache, size_t request, unsigned bin) {
  const uint64_t at = refill(space, cache, bin);
  return at != 0 ? payload(space->engine, at) : allocate_from_pool(space, request, kGranule);
}

__attribute__((noinline)) void* allocate_past_cache(Space* space, size_t request) {
  return allocate_from_pool(space, request, kGranule);
}

// The thread's first call in this space, or since it used another.
__attribute__((noinline)) void* allocate_first(Space* space, size_t request) {
  find_cache(space);
  return near.serial == space->serial ? malloc_cached(space, request) : allocate_past_cache(space, request);
}
__attribute__((noinline)) void release_first(Space* space, uint64_t at) {
  find_cache(space);
  near.serial == space->serial ? free_cached(space, payload(space->engine, at)) : release_to_pool(space, at);
}

// The bin is full: half of it goes back.
__attribute__((noinline)) void release_to_full(Space* space, Cache* cache, unsigned bin, uint64_t at) {
  if (!enter(space)) return;
  if (begin(space, cache)) {
    give_back(cache, bin, cache->bins[bin].most / 2);
    push(space->engine, cache, bin, at, size_in(header(space->engine, at)));
    end(cache);
    leave(space);
  } else {
    leave(space);
    release_to_pool(space, at);
  }
}

}  // namespace

int make_cache_key(Space* space) {
  space->fences = os::prepare_to_fence_others();
  return pthread_key_create(&space->cache_key, end_of_thread);
}

// Both leave by a tail call for what is rare, so that the rest saves no registers.
void* malloc_cached(Space* space, size_t request) {
  if (__builtin_expect(request > space->cache_largest, false)) return space->pool_malloc(space, request);
  if (__builtin_expect(near.serial != space->serial, false)) return allocate_first(space, request);
  Cache* cache = near.cache;
  if (__builtin_expect(cache == nullptr || !begin(space, cache), false)) {
    return allocate_past_cache(space, request);
  }
  // A block of a multiple of 16 bytes and 16 more has room for 8 more than the multiple.
  const size_t steps = (request + (size_t{1} << space->cache_shift) - 1 - kHeader) >> space->cache_shift;
  const unsigned bin = static_cast<unsigned>(steps) + (steps == 0);
  if (__builtin_expect(cache->bins[bin].first == 0, false)) {
    end(cache);
    return allocate_refilled(space, cache, request, bin);
  }
  const uint64_t at = pop(space->engine, cache, bin);
  end(cache);
  return payload(space->engine, at);
}

void free_cached(Space* space, void* p) {
  if (__builtin_expect(p == nullptr, false)) return;
  uint64_t value;
  const uint64_t at = find_block<false>(space, "free", p, &value);
  if (__builtin_expect((value & kFromCache) == 0, false)) return space->pool_free(space, p);
  Engine* engine = space->engine;
  if (__builtin_expect(rests(engine, at), false)) bad_block(space, "free", p);
  if (__builtin_expect(near.serial != space->serial, false)) return release_first(space, at);
  Cache* cache = near.cache;
  if (__builtin_expect(cache == nullptr || !begin(space, cache), false)) return release_to_pool(space, at);
  // A block may be a granule longer than its bin's size asked for.
  const uint64_t size = size_in(value);
  const uint64_t steps = (size - kHeader) >> space->cache_shift;
  const unsigned bin = steps < kCacheBins ? static_cast<unsigned>(steps) : kCacheBins;
  if (__builtin_expect(cache->bins[bin].count >= cache->bins[bin].most, false)) {
    end(cache);
    return release_to_full(space, cache, bin, at);
  }
  push(engine, cache, bin, at, size);
  end(cache);
}

bool is_in_cache(const Space* space, uint64_t at) {
  return rests(space->engine, at);
}

void forget_cached(Space* space, uint64_t at) {
  const uint64_t value = header(space->engine, at);
  if ((value & kFromCache) == 0) return;
  put(space->control->cached, space->control->cached - size_in(value));
  set_header(space->engine, at, value & ~kFromCache);
}

void flush(Space* space) {
  if (space->rest != nullptr) {
    const base::KeepErrno keep;
    if (enter(space)) wake(space);
  }
  if (space->cache_blocks == 0 || space->rest != nullptr) return;
  Cache* cache = static_cast<Cache*>(pthread_getspecific(space->cache_key));
  if (cache == nullptr || !enter(space)) return;
  if (begin(space, cache)) {
    give_all_back(cache);
    end(cache);
  }
  leave(space);
}

}  // namespace hummock::space
