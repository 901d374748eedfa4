// Caches: what a thread keeps at hand of a space, so that most calls enter nothing.
#ifndef HUMMOCK_SPACE_CACHE_H
#define HUMMOCK_SPACE_CACHE_H

#include "space/space.h"

namespace hummock::space {

inline constexpr unsigned kCacheBins = 64;

// A record in the space itself. Only its thread touches it, but for who empties it: see cache_inside.h.
// Statistics read `free_bytes` and the counts.
struct Cache {
  Space* space;
  uint64_t at;       // its own block
  uint64_t next;     // the caches of a space are a chain, guarded by its lock
  uint64_t prev;     // 0: it is the first
  uint32_t busy;     // 1: its thread is inside. Atomic
  uint32_t claimed;  // 1: somebody wants to empty it, or does: its thread keeps away. Atomic; guarded
  uint64_t free_bytes;
  struct Bin {
    uint64_t first;
    uint32_t count;
    uint32_t most;         // it holds at most so many
  } bins[kCacheBins + 1];  // by size / step; the first is not used
};

// Those that rest in the space's caches, added up; a chain that changes meanwhile may be cut short.
struct Resting {
  uint64_t bytes;
  uint64_t blocks;
  uint64_t records;  // of caches
};
Resting resting_in_caches(const Space* space);

// A key for the threads' caches, whose end gives their blocks back; an error number.
int make_cache_key(Space* space);

// The calls of a space whose threads have caches.
void* malloc_cached(Space* space, size_t request);
void free_cached(Space* space, void* p);
// The pool's own call found a block that stems from a cache: tells the figures. Entered.
void forget_cached(Space* space, uint64_t at);

void flush(Space* space);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_CACHE_H
