// Every name of smmalloc, with its meaning; and what the original got wrong.
#include <smmalloc.h>
#include <stdint.h>
#include <string.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kPool = 1 << 20;

void sizes() {
  CHECK(SMM_MAX_BUCKET_COUNT == 62 && SMM_CACHE_LINE_SIZE >= 32 && SMM_MAX_CACHE_ITEMS_COUNT > 0);
  SM_ASSERT(true);
  CHECK(sm::IsAligned(64, 32) && !sm::IsAligned(48, 32));
  CHECK(sm::Align(33, 16) == 48 && sm::Align(48, 16) == 48);
  CHECK(sm::Min(3, 4) == 3);
  CHECK(sm::Allocator::kMinValidAlignment == 4);
  for (size_t index = 0; index < SMM_MAX_BUCKET_COUNT; ++index) {
    const size_t size = sm::GetBucketSizeInBytesByIndex(index);
    CHECK(sm::GetBucketIndexBySize(size) == index);
    CHECK(sm::GetBucketIndexBySize(size + 1) == index + 1);
    CHECK(size % 4 == 0);
  }
  CHECK(sm::GetBucketSizeInBytesByIndex(61) == 25088);
}

void c_functions() {
  sm_allocator space = _sm_allocator_create(4, kPool);
  CHECK(space != nullptr);
  _sm_allocator_thread_cache_create(space, sm::CACHE_WARM, {100, 200, 300, 400, 500});
  void* p = _sm_malloc(space, 19, 16);
  CHECK(p != nullptr && sm::IsAligned(reinterpret_cast<size_t>(p), 16));
  CHECK(_sm_msize(space, p) == 32 && _sm_mbucket(space, p) == 1);
  CHECK(_sm_mbucket(space, static_cast<char*>(p) + 31) == 1);
  memset(p, 'a', 19);
  p = _sm_realloc(space, p, 50, 16);
  CHECK(_sm_mbucket(space, p) == 3 && static_cast<char*>(p)[18] == 'a');
  p = _sm_realloc(space, p, 5000, 16);
  CHECK(_sm_mbucket(space, p) == -1 && _sm_msize(space, p) == 5000 && static_cast<char*>(p)[18] == 'a');
  p = _sm_realloc(space, p, 19, 16);
  CHECK(_sm_mbucket(space, p) == 1 && static_cast<char*>(p)[18] == 'a');
  CHECK(_sm_realloc(space, p, 0, 16) == nullptr);
  p = _sm_realloc(space, nullptr, 10, 16);
  CHECK(_sm_mbucket(space, p) == 0);
  _sm_free(space, p);
  _sm_free(space, nullptr);
  p = _sm_malloc(space, 0, 16);
  CHECK(p != nullptr);
  _sm_free(space, p);
  _sm_free(space, p);
  _sm_allocator_thread_cache_destroy(space);
  _sm_allocator_destroy(space);
  _sm_allocator_destroy(nullptr);
  _sm_allocator_thread_cache_create(nullptr, sm::CACHE_COLD, {1});
  _sm_allocator_thread_cache_destroy(nullptr);
}

void class_functions() {
  const auto instance = sm::GenericAllocator::Create();
  CHECK(sm::GenericAllocator::IsValid(instance));
  sm::Allocator space(instance);
  CHECK(space.GetGenericAllocatorInstance() == instance);
  CHECK(space.GetBucketsCount() == 0);
  void* early = space.Alloc(100, 16);  // goes to the generic allocator
  CHECK(early != nullptr && !space.IsMyAlloc(early) && space.GetUsableSize(early) == 100);
  early = space.Realloc(early, 200, 16);
  space.Free(early);
  space.Init(100, 10000);
  CHECK(space.GetBucketsCount() == 62);
  CHECK(space.GetBucketElementsCount(0) == 12288 / 16 && space.GetBucketElementsCount(62) == 0);
  CHECK(space.GetBucketElementsCount(61) == 0);  // larger than the pool
  space.CreateThreadCache(sm::CACHE_HOT, {32, 32, 32, 32});
  std::vector<void*> blocks;
  for (uint32_t i = 0; i < space.GetBucketElementsCount(2); ++i) {
    blocks.push_back(space.Alloc(40, 4));
    CHECK(space.GetBucketIndex(blocks.back()) == 2 && space.IsMyAlloc(blocks.back()));
    CHECK(space.GetUsableSize(blocks.back()) == 48);
  }
  void* over = space.Alloc(40, 4);
  CHECK(space.GetBucketIndex(over) == 3);
  over = space.Realloc(over, 30, 16);
  space.Free(over);
  for (void* block : blocks) space.Free(block);
  space.DestroyThreadCache();
  sm::GenericAllocator::Destroy(instance);
}

void generic_allocator() {
  const auto instance = sm::GenericAllocator::Create();
  CHECK(sm::GenericAllocator::Invalid() == nullptr);
  void* p = sm::GenericAllocator::Alloc(instance, 1000, 128);
  CHECK(sm::IsAligned(reinterpret_cast<size_t>(p), 128) &&
        sm::GenericAllocator::GetUsableSpace(instance, p) == 1000);
  p = sm::GenericAllocator::Realloc(instance, p, 3000, 256);
  CHECK(sm::IsAligned(reinterpret_cast<size_t>(p), 256) &&
        sm::GenericAllocator::GetUsableSpace(instance, p) == 3000);
  sm::GenericAllocator::Free(instance, p);
  std::unique_ptr<char, sm::GenericAllocator::Deleter> owned(
      static_cast<char*>(sm::GenericAllocator::Alloc(instance, 10, 16)),
      sm::GenericAllocator::Deleter(instance));
  CHECK(owned != nullptr);
}

// ---- What the original got wrong ----------------------------------------------------------------

void caches_belong_to_one_allocator() {
  sm_allocator a = _sm_allocator_create(4, kPool), b = _sm_allocator_create(4, kPool);
  _sm_allocator_thread_cache_create(a, sm::CACHE_HOT, {64, 64, 64, 64});
  _sm_allocator_thread_cache_create(b, sm::CACHE_HOT, {64, 64, 64, 64});
  _sm_free(a, _sm_malloc(a, 16, 16));
  void* p = _sm_malloc(b, 16, 16);
  CHECK(_sm_mbucket(b, p) == 0 && _sm_mbucket(a, p) == -1);
  _sm_allocator_destroy(a);
  _sm_free(b, p);
  _sm_allocator_destroy(b);
}

void threads_lose_nothing() {
  sm_allocator space = _sm_allocator_create(1, 4096);
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      _sm_allocator_thread_cache_create(space, sm::CACHE_HOT, {16});
      _sm_free(space, _sm_malloc(space, 16, 16));
    }).join();
  }
  for (int i = 0; i < 256; ++i) CHECK(_sm_mbucket(space, _sm_malloc(space, 16, 16)) == 0);
  _sm_allocator_destroy(space);
}

void sizes_and_alignments_that_wrap() {
  sm_allocator space = _sm_allocator_create(62, kPool);
  for (size_t less = 0; less < 100; ++less) {
    CHECK(_sm_malloc(space, SIZE_MAX - less, 16) == nullptr);
    CHECK(_sm_malloc(space, SIZE_MAX - less, 4096) == nullptr);
  }
  for (size_t align = 1; align <= (1 << 20); align *= 2) {
    void* p = _sm_malloc(space, 100, align);
    CHECK(sm::IsAligned(reinterpret_cast<size_t>(p), align));
    p = _sm_realloc(space, p, 120, align * 2);
    CHECK(sm::IsAligned(reinterpret_cast<size_t>(p), align * 2));
    _sm_free(space, p);
  }
  void* p = _sm_malloc(space, 20000, 16);
  p = _sm_realloc(space, p, 16, 16);
  CHECK(_sm_msize(space, p) == 16);  // memory is given back
  _sm_free(space, p);
  _sm_allocator_destroy(space);
}

void strange_allocators() {
  sm_allocator none = _sm_allocator_create(0, kPool);
  void* p = _sm_malloc(none, 16, 16);
  CHECK(_sm_mbucket(none, p) == -1);
  _sm_free(none, p);
  _sm_allocator_destroy(none);
  CHECK(_sm_allocator_create(62, SIZE_MAX / 4) == nullptr);  // out of memory
  sm_allocator tight = _sm_allocator_create(62, 4096);       // elements larger than the pool
  for (size_t size : {4096u, 5000u, 25088u}) {
    p = _sm_malloc(tight, size, 16);
    memset(p, 1, size);
    CHECK(_sm_msize(tight, p) >= size);
    _sm_free(tight, p);
  }
  _sm_allocator_destroy(tight);
}

}  // namespace

int main() {
  sizes();
  c_functions();
  class_functions();
  generic_allocator();
  caches_belong_to_one_allocator();
  threads_lose_nothing();
  sizes_and_alignments_that_wrap();
  strange_allocators();
  return 0;
}
