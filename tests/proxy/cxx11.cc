// A program written for smmalloc is built as C++11, and its warnings are errors: this one is, once for each
// of the macros that change the header.
#include <smmalloc.h>

int main() {
  sm_allocator space = _sm_allocator_create(32, 1 << 20);
  if (space == nullptr) return 1;
  _sm_allocator_thread_cache_create(space, sm::CACHE_HOT, {16, 16, 16, 16});
  void* p = _sm_malloc(space, 19, 16);
  p = _sm_realloc(space, p, 40, 16);
  const bool good = p != nullptr && _sm_msize(space, p) >= 40 && _sm_mbucket(space, p) >= 0 &&
                    sm::GetBucketSizeInBytesByIndex(sm::GetBucketIndexBySize(40)) >= 40;
#ifdef SMMALLOC_STATS_SUPPORT
  if (space->GetGlobalStats().totalNumAllocationAttempts == 0 || space->GetBucketStats(0) == nullptr)
    return 2;
#endif
  _sm_free(space, p);
  _sm_allocator_thread_cache_destroy(space);
  _sm_allocator_destroy(space);
  return good ? 0 : 3;
}
