// Checked mode: first-class heaps, and what is found when one is destroyed, or at the program's end.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <string.h>

#include <string>

#include "heap/user.h"
#include "modes/checked.h"
#include "modes/checked_record.h"
#include "support/capture.h"
#include "support/figures.h"
#include "support/quarantine.h"
#include "support/support.h"

// Of this very program, so that the first block finds it in effect.
const char* hummock_conf = "checked:on,stacks:8,quarantine:4M";

namespace checked = hummock::modes::checked;
using hummock::heap::Life;
using support::contains;
using support::empty_quarantine;
using support::Ending;
using support::ending_of;
using support::figures;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
const size_t kSizes[] = {0, 1, 16, 100, 4096, 65536, 300000, 2 * kMiB, 40 * kMiB};

struct Heap {
  hummock_heap_t* handle = hummock_heap_create();

  Heap() { REQUIRE(handle != nullptr); }
  char* block_of(size_t size) const {
    char* block = static_cast<char*>(hummock_heap_malloc(handle, size));
    REQUIRE(block != nullptr);
    return block;
  }
  void free(char* block) const { hummock_heap_free(handle, block); }
  void destroy() const { hummock_heap_destroy(handle); }
};

struct Records {
  size_t all;
  size_t ending;
};
Records count_records() {
  Records count = {};
  for (auto* heap = hummock::heap::all_user_heaps(); heap != nullptr; heap = heap->next_record) {
    ++count.all;
    count.ending += heap->life == Life::ending;
  }
  return count;
}

}  // namespace

TEST_CASE("a heap is destroyed with its blocks, live or in quarantine") {
  Heap heap;
  for (const size_t size : kSizes) {
    CHECK(hummock_usable_size(heap.block_of(size)) == size);
    heap.free(heap.block_of(size));
  }
  char* moved = static_cast<char*>(hummock_realloc(heap.block_of(10), 1000));
  CHECK(hummock_usable_size(moved) == 1000);
  heap.destroy();
  CHECK_FALSE(ending_of([] {
                checked::check_all();
                empty_quarantine();
                checked::check_all();
              }).aborted);
}

TEST_CASE("what was written past a block, or after its free, is told when its heap is destroyed") {
  for (const size_t size : kSizes) {
    INFO(size);
    const Ending past = ending_of([size] {
      Heap heap;
      heap.block_of(size)[size] = 1;
      heap.destroy();
    });
    CHECK(past.aborted);
    CHECK(contains(past.said, "hummock_heap_destroy(0x"));
    CHECK(contains(past.said, "of a block of " + std::to_string(size) + " bytes"));
    if (size == 0) continue;
    const Ending after = ending_of([size] {
      Heap heap;
      char* block = heap.block_of(size);
      heap.free(block);
      block[size - 1] = 1;
      heap.destroy();
    });
    CHECK(after.aborted);
    CHECK(
        contains(after.said, "hummock_heap_destroy: byte " + std::to_string(size - 1) + " of a freed block"));
  }
}

TEST_CASE("blocks of a destroyed heap are freed blocks") {
  for (const size_t size : kSizes) {
    INFO(size);
    const Ending again = ending_of([size] {
      Heap heap;
      char* block = heap.block_of(size);
      heap.destroy();
      hummock_free(block);
    });
    CHECK(again.aborted);
    CHECK(
        contains(again.said, "double free: the block of " + std::to_string(size) + " bytes is free already"));
    if (size == 0) continue;
    const Ending written = ending_of([size] {
      Heap heap;
      char* block = heap.block_of(size);
      heap.destroy();
      block[0] = 1;
      checked::check_all();
    });
    CHECK(written.aborted);
    CHECK(
        contains(written.said, "at the end: byte 0 of a freed block of " + std::to_string(size) + " bytes"));
  }
}

// Zeros are what a program most often writes over a record: memset, or a number's high bytes.
TEST_CASE("a record that was overwritten is told at the end, whatever was written") {
  for (const int value : {0, 1, 0xff}) {
    for (const size_t size : {size_t{100}, size_t{300000}, 40 * kMiB}) {
      for (const bool live : {true, false}) {
        CAPTURE(value);
        CAPTURE(size);
        CAPTURE(live);
        const Ending ending = ending_of([=] {
          char* block = static_cast<char*>(hummock_malloc(size));
          if (!live) hummock_free(block);
          char* volatile record =
              block - checked::kGuard - sizeof(checked::Record);  // not the compiler's to see
          memset(record, value, sizeof(checked::Record));
          checked::check_all();
        });
        CHECK(ending.aborted);
        CHECK(contains(ending.said, "at the end: the record of a block at 0x"));
      }
    }
  }
}

// With each other free, a block of an ended heap leaves the quarantine, and at last the heap's record is
// free.
TEST_CASE("heaps that come and go keep no more than the quarantine may") {
  for (int i = 0; i < 20000; ++i) {
    Heap heap;
    char* block = heap.block_of(100);
    heap.block_of(static_cast<size_t>(i) % 3000);
    heap.free(block);
    heap.destroy();
    for (int k = 0; k < 3; ++k) hummock_free(hummock_malloc(20));
  }
  CHECK(count_records().all < 800);  // 5 KiB each
  empty_quarantine();
  CHECK(count_records().ending <= 8);
}

TEST_CASE("a destroyed heap is no more the program's, though blocks of it rest in quarantine") {
  const size_t before = figures().heaps;
  Heap heap;
  hummock_heap_set_name(heap.handle, "gone");
  heap.block_of(100);
  CHECK(figures().heaps == before + 1);
  heap.destroy();
  CHECK(figures().heaps == before);
  auto* record = reinterpret_cast<hummock::heap::UserHeap*>(heap.handle);
  CHECK(record->life == Life::ending);
  CHECK(record->name[0] == '\0');
  empty_quarantine();
  CHECK(record->life == Life::pooled);
}

TEST_CASE("what fits into the quarantine rests there, also where it is freed with its heap") {
  const Ending ending = ending_of([] {
    char* block = static_cast<char*>(hummock_malloc(64));
    hummock_free(block);
    Heap heap;
    for (int i = 0; i < 170; ++i) heap.block_of(17000);  // of 4 MiB three quarters
    heap.destroy();
    block[8] = 1;
    checked::check_all();
  });
  CHECK(ending.aborted);
  CHECK(contains(ending.said, "at the end: byte 8 of a freed block of 64 bytes"));
}

TEST_CASE("a heap that was destroyed is told to whoever destroys or uses it") {
  const Ending again = ending_of([] {
    Heap heap;
    heap.block_of(100);
    heap.destroy();
    heap.destroy();
  });
  CHECK(again.aborted);
  CHECK(contains(again.said, "hummock_heap_destroy(0x"));
  CHECK(contains(again.said, "there is no heap: destroyed before"));
  const Ending used = ending_of([] {
    Heap heap;
    heap.destroy();
    heap.block_of(100);
  });
  CHECK(used.aborted);
  CHECK(contains(used.said, "hummock_heap_malloc(0x"));
  CHECK(contains(used.said, "there is no heap: destroyed before"));
}

// Another thread may be about to destroy it, and has not looked at its blocks.
TEST_CASE("a heap whose destroy has begun is looked at when the program ends") {
  const Ending ending = ending_of([] {
    Heap heap;
    heap.block_of(100)[100] = 1;
    CHECK(end_use(reinterpret_cast<hummock::heap::UserHeap*>(heap.handle)));
    checked::check_all();
  });
  CHECK(ending.aborted);
  CHECK(contains(ending.said, "at the end(0x"));
}

// A handler of a signal that ends the program may have interrupted this thread in a heap, or one that others
// wait for with their heaps' locks.
TEST_CASE("the end of the program waits for no heap") {
  Heap heap;
  auto* record = reinterpret_cast<hummock::heap::UserHeap*>(heap.handle);
  heap.block_of(100)[100] = 1;
  CHECK_FALSE(ending_of([&] {
                record->lock.lock();
                checked::check_all();
                record->lock.unlock();
              }).aborted);
  CHECK(ending_of([] { checked::check_all(); }).aborted);
}
