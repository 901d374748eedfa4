// Two threads free one block, both having seen it live: each order of what they do after, set up by hand.
#include <doctest/doctest.h>
#include <hummock/hummock.h>

#include <atomic>
#include <thread>

#include "heap/diagnose.h"
#include "heap/heap_pool.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "support/capture.h"
#include "support/support.h"

namespace {

using namespace hummock;

SlabHeader* slab_of(const void* block) {
  SlabHeader* slot = pages::header_of(block);
  return slot - slot->back;
}

// What the second thread does with a block that it has seen to be live.
void hand_over_at_once(void* block) {
  slab::set_next_remote(block, nullptr);
  heap::hand_over(slab_of(block), block, block, 1);
}

constexpr size_t kSizes[] = {16, 64, 1000};

}  // namespace

TEST_CASE("a block that waits to be handed over is handed over by another thread") {
  for (const size_t size : kSizes) {
    for (const bool marked_last : {false, true}) {
      if (marked_last && !slab::kMarksLinks) continue;  // the mark takes the check's place, too
      CAPTURE(size);
      CAPTURE(marked_last);
      const support::Ending ended = support::ending_of([&] {
        void* block = hummock_malloc(size);
        std::thread([&] {
          hummock_free(block);
          const uintptr_t mark = slab::link_word(block);
          hand_over_at_once(block);
          // This thread's store came after the other's.
          if (marked_last) slab::link_word(block) = mark;
          heap::flush_remote(heap::thread_heap);
        }).join();
      });
      CHECK(ended.aborted);
      CHECK(support::contains(ended.said, "freed"));
    }
  }
}

TEST_CASE("a block nobody wrote to is freed by its owner between another thread's look and its mark") {
  for (const size_t size : kSizes) {
    CAPTURE(size);
    const support::Ending ended = support::ending_of([&] {
      void* block = hummock_malloc(size);
      std::atomic<bool> looked = false;
      std::atomic<bool> freed = false;
      std::thread other([&] {
        hummock_free(hummock_malloc(1));  // it has a heap
        const uint32_t check = heap::note_check(block);
        const bool free = slab::looks_free(block);
        looked = true;
        while (!freed) std::this_thread::yield();
        if (!free) heap::release_remote(heap::thread_heap, slab_of(block), block, check);
      });
      while (!looked) std::this_thread::yield();
      hummock_free(block);
      freed = true;
      other.join();
    });
    CHECK(ended.aborted);
    CHECK(support::contains(ended.said, "freed"));
  }
}

TEST_CASE("a block that waits to be handed over is told when it is freed again") {
  for (const size_t size : kSizes) {
    CAPTURE(size);
    const support::Ending ended = support::ending_of([&] {
      void* block = hummock_malloc(size);
      std::thread([&] {
        hummock_free(block);
        std::thread([&] { hummock_free(block); }).join();
      }).join();
    });
    CHECK(ended.aborted);
    CHECK(support::contains(ended.said, "double free"));
  }
}

TEST_CASE("a slab ends between another thread's look at its last block and what it does then") {
  for (const size_t size : {1000, 20000, 65536}) {
    CAPTURE(size);
    void* block = nullptr;
    std::thread([&] { block = hummock_malloc(size); }).join();
    heap::give_up_parked();
    SlabHeader* slab = slab_of(block);
    REQUIRE(slab->owner == kShared);
    CHECK_FALSE(heap::was_freed(slab, block, true));
    std::thread([&] {
      hummock_free(block);
      heap::flush_remote(heap::thread_heap);
    }).join();
    REQUIRE(slab->kind == Kind::cached);
    CHECK(heap::was_freed(slab, block, true));
    const support::Ending ended = support::ending_of([&] {
      hand_over_at_once(block);
      for (int i = 0; i < 10000; ++i) hummock_malloc(size);
    });
    CHECK(ended.aborted);
    CHECK(support::contains(ended.said, "freed twice"));
  }
}
