// With SMMALLOC_STATS_SUPPORT the allocator counts its calls.
#define SMMALLOC_STATS_SUPPORT
#include <smmalloc.h>

#include "check.h"

int main() {
  sm_allocator space = _sm_allocator_create(3, 4096);
  _sm_allocator_thread_cache_create(space, sm::CACHE_HOT, {8});
  void* blocks[] = {_sm_malloc(space, 10, 16), _sm_malloc(space, 32, 16), _sm_malloc(space, 1000, 16)};
  const sm::GlobalStats& all = space->GetGlobalStats();
  CHECK(all.totalNumAllocationAttempts.load() == 3);
  CHECK(all.totalAllocationsServed.load() == 2);
  CHECK(all.totalAllocationsRoutedToDefaultAllocator.load() == 1);
  CHECK(all.routingReasonBySize.load() == 1);
  CHECK(all.routingReasonSaturation.load() == 0);
  for (void* block : blocks) _sm_free(space, block);
  CHECK(space->GetBucketStats(0)->cacheHitCount.load() == 1);
  CHECK(space->GetBucketStats(0)->freeCount.load() == 1);
  CHECK(space->GetBucketStats(1)->hitCount.load() == 1);
  for (int i = 0; i < 100; ++i) _sm_malloc(space, 48, 16);
  CHECK(space->GetBucketStats(2)->missCount.load() == 100 - 85);
  CHECK(space->GetGlobalStats().routingReasonSaturation.load() == 100 - 85);
  CHECK(space->GetBucketStats(3) == nullptr);
  _sm_allocator_destroy(space);
  return 0;
}
