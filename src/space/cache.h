// Caches: what a thread keeps at hand of a space, so that most calls enter nothing.
#ifndef HUMMOCK_SPACE_CACHE_H
#define HUMMOCK_SPACE_CACHE_H

#include "space/space.h"

namespace hummock::space {

inline constexpr unsigned kCacheBins = 64;

// A record in the space itself. Only its thread touches it; `free_*` are read by who makes statistics.
struct Cache {
  Space* space;
  uint64_t at;  // its own block
  unsigned slot;
  uint64_t free_bytes;
  uint64_t free_blocks;
  struct Bin {
    uint64_t first;
    uint64_t count;
  } bins[kCacheBins + 1];  // by size / step; the first is not used
};

// A key for the threads' caches, whose end gives their blocks back; an error number.
int make_cache_key(Space* space);

void* allocate_cached(Space* space, size_t request);
// False: the live block is the pool's.
bool release_cached(Space* space, uint64_t at);
// The pool's own call found a block that stems from a cache: tells the figures. Entered.
void forget_cached(Space* space, uint64_t at);

void flush(Space* space);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_CACHE_H
