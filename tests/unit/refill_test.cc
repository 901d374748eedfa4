// What a heap does with its slabs, where the order of things is rare: set up by hand.
#include "heap/refill.h"

#include <doctest/doctest.h>
#include <hummock/hummock.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "heap/idle.h"
#include "heap/inbox.h"
#include "heap/magazine.h"
#include "os/thread.h"

namespace {

using namespace hummock;

std::vector<void*> take(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = hummock_malloc(size);
  return blocks;
}

void give(const std::vector<void*>& blocks) {
  for (void* block : blocks) hummock_free(block);
}

void give_elsewhere(const std::vector<void*>& blocks) {
  std::thread([&] { give(blocks); }).join();
}

SlabHeader* slab_of(const void* block) {
  SlabHeader* slot = pages::header_of(block);
  return slot - slot->back;
}

// Those of the blocks that stand in the slab leave them.
std::vector<void*> take_out(std::vector<void*>* blocks, const SlabHeader* slab) {
  const auto others = std::partition(blocks->begin(), blocks->end(),
                                     [=](const void* block) { return slab_of(block) != slab; });
  std::vector<void*> inside(others, blocks->end());
  blocks->erase(others, blocks->end());
  return inside;
}

}  // namespace

TEST_CASE("a class that is swept while it is filled has lost no block") {
  constexpr size_t kSize = 64;
  const unsigned size_class = slab::class_of(kSize);
  std::vector<void*> blocks = take(300, kSize);
  give_elsewhere(take(6000, kSize));
  // What others freed rests; the magazine is empty.
  heap::Heap* heap = heap::thread_heap;
  while (heap->rest[size_class].count < 300) blocks.insert(blocks.begin(), hummock_malloc(kSize));
  heap::Bin& bin = heap->bins[size_class];
  while (bin.blocks != &bin) blocks.insert(blocks.begin(), hummock_malloc(kSize));
  // The next time that it is filled it is this class's turn to be swept.
  bin.seen = heap::first_blocks(heap, size_class);
  heap->refills = 255;
  heap->hand = static_cast<uint8_t>(size_class - 1);
  heap::note_freed();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  blocks.push_back(hummock_malloc(kSize));
  give(blocks);
}

TEST_CASE("a slab that others told of, and whose slot is the inside of another slab since") {
  constexpr size_t kSize = 1024, kLong = 11 << 10;
  const unsigned size_class = slab::class_of(kSize);
  REQUIRE(slab::kTable.row[slab::class_of(kLong)].slots == 2);
  std::vector<void*> blocks = take(40000, kSize);
  heap::Heap* heap = heap::thread_heap;
  SlabHeader* told = heap->current[size_class];  // that blocks come from; slabs go down from there
  REQUIRE(told != nullptr);
  std::vector<void*> inside = take_out(&blocks, told);
  // All that it has, so that what others free there comes next.
  while (told->live != told->capacity || heap->bins[size_class].blocks != &heap->bins[size_class])
    inside.push_back(hummock_malloc(kSize));
  std::vector<void*> some(inside.end() - 20, inside.end());
  inside.resize(inside.size() - 20);
  give_elsewhere(some);
  // Others tell of many slabs more, which are looked at before.
  std::vector<void*> other = take_out(&blocks, slab_of(blocks.front()));
  std::vector<void*> many, kept;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 64 == 1) {
      hummock_free(blocks[i]);  // it is this thread's again
    } else {
      (i % 2 == 0 ? many : kept).push_back(blocks[i]);
    }
  }
  give_elsewhere(many);
  // What came back is taken, and freed, here.
  void* block;
  while (slab_of(block = hummock_malloc(kSize)) != told) kept.push_back(block);
  inside.push_back(block);
  give(inside);
  heap::empty_bin(heap, size_class);
  REQUIRE(told->kind == Kind::cached);
  CHECK((told->remote & slab::kQueued) != 0);
  give(other);  // takes its place in the cache of spans
  heap::empty_bin(heap, size_class);
  std::vector<void*> longer;
  while (told->kind != Kind::interior) {
    longer.push_back(hummock_malloc(kLong));
    REQUIRE(longer.size() < 100);
  }
  CHECK((told->remote & slab::kQueued) != 0);
  while (heap::read_inbox(heap)) {
  }
  give(longer);
  give(kept);
  heap::empty_bin(heap, size_class);
}

TEST_CASE("a slab whose blocks others freed in part goes back with its own thread's last free") {
  // In a thread of its own, which has nothing at hand.
  std::thread([] {
    for (const size_t size : {100, 1000, 6000}) {
      for (const bool told : {true, false}) {
        CAPTURE(size);
        CAPTURE(told);
        const unsigned size_class = slab::class_of(size);
        const std::vector<void*> blocks = take((16 << 20) / size, size);
        std::vector<void*> theirs, own, first;
        for (size_t i = 0; i < blocks.size(); ++i) {
          // With a free here each slab is the thread's own again, which others then tell it of.
          auto& list = i % 8 < 3 ? theirs : i % 8 == 3 && told ? first : own;
          list.push_back(blocks[i]);
        }
        give(first);
        give_elsewhere(theirs);
        heap::Heap* heap = heap::thread_heap;
        while (heap::read_inbox(heap)) {
        }
        give(own);
        heap::empty_bin(heap, size_class);
        size_t slabs = heap->current[size_class] != nullptr;
        for (SlabHeader* slab = heap->partial[size_class].front(); slab != nullptr; slab = slab->next)
          ++slabs;
        CHECK(slabs <= 2);
      }
    }
  }).join();
}

TEST_CASE("a large block whose span was a slab of this thread in between") {
  constexpr size_t kLarge = 2 * kSlotSize, kLong = 11 << 10;
  REQUIRE(slab::kTable.row[slab::class_of(kLong)].slots == 2);
  hummock_free(hummock_malloc(64));
  // Near caches are the threads' own, as where the processor is not known.
  const intptr_t processor_at = std::exchange(hummock::os::processor_at, 0);
  const unsigned near_cache = heap::thread_heap->near_cache;
  hummock_trim(0);
  hummock_free(hummock_malloc(kLarge));
  void* large = hummock_malloc(kLarge);  // the near cache's entry leads there
  SlabHeader* span = pages::header_of(large);
  void* other = hummock_malloc(kLarge);
  // Another near cache has it, until the next one comes; then it is for all.
  std::thread([&] {
    hummock_free(hummock_malloc(64));
    REQUIRE(heap::thread_heap->near_cache != near_cache);
    hummock_free(large);
    hummock_free(other);
  }).join();
  REQUIRE(span->kind == Kind::cached);
  std::vector<void*> blocks;
  for (int i = 0; i < 100 && span->kind != Kind::slab; ++i) blocks.push_back(hummock_malloc(kLong));
  REQUIRE(span->kind == Kind::slab);
  REQUIRE(span->home == heap::thread_heap);
  give(blocks);
  heap::empty_bin(heap::thread_heap, slab::class_of(kLong));
  REQUIRE(span->kind == Kind::cached);
  CHECK(hummock_malloc(kLarge) == large);
  hummock_free(large);
  hummock::os::processor_at = processor_at;
}

TEST_CASE("the bytes that others freed are counted until somebody takes them, whatever happens to them") {
  const auto counted = [] { return relaxed(slab::returned_bytes.value); };
  const ptrdiff_t before = counted();
  for (const size_t size : {8, 48, 1024, 5120, 32768}) {
    CAPTURE(size);
    const size_t room = hummock_usable_size(take(1, size)[0]);
    const std::vector<void*> blocks = take((size_t{4} << 20) / size, size);
    // Half of each slab, so that none ends.
    std::vector<void*> freed;
    for (size_t i = 0; i < blocks.size(); i += 2) freed.push_back(blocks[i]);
    give_elsewhere(freed);
    const auto all = static_cast<ptrdiff_t>(freed.size() * room);
    CHECK(counted() - before <= all);
    CHECK(counted() - before >= all / 2);
    heap::purge_idle();
    take(freed.size() * 2, size);
    // The class's current slab may have some left.
    CHECK(counted() - before <= ptrdiff_t{1} << 20);
  }
}

TEST_CASE("what a purge under way holds is not live, and a trim ends the purge") {
  const auto live = [] {
    hummock_stats_t stats = {};
    stats.size = sizeof stats;
    REQUIRE(hummock_stats(&stats) == 0);
    return stats.live;
  };
  std::vector<void*> blocks = take(400, 5120);
  const size_t room = hummock_usable_size(blocks[0]), before = live();
  SlabHeader* slab = slab_of(blocks[200]);
  const std::vector<void*> inside = take_out(&blocks, slab);
  REQUIRE(inside.size() > 2);
  give_elsewhere({inside[0], inside[1]});
  CHECK(live() == before - 2 * room);
  REQUIRE(slab::begin_purge(slab, slab->remote));
  CHECK(live() == before - 2 * room);
  heap::purge_idle();
  CHECK(!slab::purge_is_under_way());
  CHECK(live() == before - 2 * room);
}

TEST_CASE("slabs that end with what others freed leave nothing in the count") {
  const auto counted = [] { return relaxed(slab::returned_bytes.value); };
  const ptrdiff_t before = counted();
  for (const size_t size : {16, 300, 2048, 20000}) {
    CAPTURE(size);
    std::vector<void*> blocks;
    std::thread([&] { blocks = take((size_t{4} << 20) / size, size); }).join();
    give_elsewhere(blocks);
    CHECK(counted() == before);
  }
}

TEST_CASE("what refills hand over of others' blocks is counted, too") {
  constexpr size_t kEach = 30, kRounds = 200, kSize = 1024, kMostUncounted = 64 << 10;
  const ptrdiff_t before = relaxed(slab::returned_bytes.value);
  const std::vector<void*> blocks = take(2 * kEach * kRounds, kSize);
  std::thread([&] {
    for (size_t round = 0; round < kRounds; ++round) {
      // Every second, so that no slab ends.
      for (size_t i = 0; i < kEach; ++i) hummock_free(blocks[2 * (round * kEach + i)]);
      give(take(150, 16000));
    }
    const ptrdiff_t counted = relaxed(slab::returned_bytes.value) - before;
    CHECK(counted >= static_cast<ptrdiff_t>(kEach * kRounds * kSize - 2 * kMostUncounted));
  }).join();
}
