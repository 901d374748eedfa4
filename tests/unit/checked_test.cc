// Checked mode: what it promises of every block.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>

#include <string>

#include "modes/checked.h"
#include "modes/checked_record.h"
#include "support/capture.h"
#include "support/figures.h"
#include "support/quarantine.h"
#include "support/support.h"

// Of this very program, so that the first block finds it in effect.
const char* hummock_conf = "checked:on,stacks:8";

namespace checked = hummock::modes::checked;
using support::contains;
using support::empty_quarantine;
using support::Ending;
using support::ending_of;
using support::figures;
using support::Quarantine;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
const size_t kSizes[] = {0,    1,    8,     15,    16,       17,      100,      257,
                         4096, 8193, 65536, 70000, 2 * kMiB, 5000001, 20 * kMiB};

char* block_of(size_t size) {
  char* block = static_cast<char*>(hummock_malloc(size));
  REQUIRE(block != nullptr);
  return block;
}

bool all_are(const char* bytes, unsigned char value, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (static_cast<unsigned char>(bytes[i]) != value) return false;
  }
  return true;
}

std::string number(size_t n) {
  return std::to_string(n);
}

}  // namespace

TEST_CASE("the mode is on") {
  hummock_free(block_of(10));  // the first block reads the options
  CHECK(support::checked());
  hummock_free(nullptr);
  CHECK(hummock_usable_size(nullptr) == 0);
}

TEST_CASE("sizes are exact") {
  for (const size_t size : kSizes) {
    INFO(size);
    char* block = block_of(size);
    CHECK(hummock_usable_size(block) == size);
    CHECK(support::is_aligned(block, 16));
    memset(block, 1, size);
    hummock_free(block);
  }
  for (const size_t size : kSizes) {
    char* block = block_of(size);
    memset(block, 1, size);
    hummock_free_sized(block, size);
  }
}

TEST_CASE("one byte too many is found at the free") {
  for (const size_t size : kSizes) {
    INFO(size);
    const Ending after = ending_of([size] {
      char* block = block_of(size);
      block[size] = 1;
      hummock_free(block);
    });
    CHECK(after.aborted);
    CHECK(contains(after.said,
                   "written at byte " + number(size) + " of a block of " + number(size) + " bytes"));
    CHECK(contains(after.said, "  allocated by thread "));

    const Ending before = ending_of([size] {
      char* block = block_of(size);
      block[-1] = 1;
      hummock_free(block);
    });
    CHECK(before.aborted);
    CHECK(contains(before.said, "written 1 bytes before a block of " + number(size) + " bytes"));
  }
}

TEST_CASE("an overflow is found by realloc, and at the end") {
  const Ending resized = ending_of([] {
    char* block = block_of(100);
    block[103] = 1;
    hummock_realloc(block, 200);
  });
  CHECK(resized.aborted);
  CHECK(contains(resized.said, "realloc(0x"));
  CHECK(contains(resized.said, "written at byte 103 of a block of 100 bytes"));

  const Ending at_end = ending_of([] {
    block_of(100)[100] = 1;
    checked::check_all();
  });
  CHECK(at_end.aborted);
  CHECK(contains(at_end.said, "at the end"));
  CHECK(contains(at_end.said, "written at byte 100 of a block of 100 bytes"));
  CHECK_FALSE(ending_of([] { checked::check_all(); }).aborted);
}

TEST_CASE("fresh and freed memory is poisoned") {
  char* block = block_of(1000);
  CHECK(all_are(block, checked::kFresh, 1000));
  memset(block, 1, 1000);
  hummock_free(block);
  CHECK(all_are(block, checked::kFreed, 1000));

  // Of a large one both ends, so that a free does not touch all of it.
  char* large = block_of(5 * kMiB);
  memset(large, 1, 5 * kMiB);
  hummock_free(large);
  CHECK(all_are(large, checked::kFreed, 65536));
  CHECK(all_are(large + 5 * kMiB - 65536, checked::kFreed, 65536));
}

TEST_CASE("a write after the free is found when the block leaves the quarantine") {
  for (const size_t size : {size_t{1}, size_t{100}, size_t{70000}, 5 * kMiB}) {
    INFO(size);
    const Ending ending = ending_of([size] {
      char* block = block_of(size);
      hummock_free(block);
      block[size - 1] = 1;
      empty_quarantine();
    });
    CHECK(ending.aborted);
    CHECK(contains(ending.said,
                   "byte " + number(size - 1) + " of a freed block of " + number(size) + " bytes"));
    CHECK(contains(ending.said, "written after the free"));
    CHECK(contains(ending.said, "  freed by thread "));
  }
}

TEST_CASE("near a hard limit freed blocks rest, too, and the handler hears of a refusal once") {
  static int told;
  const Ending ending = ending_of([] {
    REQUIRE(hummock_option_set("limit_hard", "32M") == 0);
    REQUIRE(hummock_on_limit([](int which, size_t, size_t) { told += which == HUMMOCK_LIMIT_HARD; }) == 0);
    static char* blocks[1 << 18];
    size_t count = 0;
    while (char* block = static_cast<char*>(hummock_malloc(200))) blocks[count++] = block;
    if (told != 1) return;
    for (int i = 0; i < 100; ++i) hummock_free(blocks[--count]);
    hummock_free(block_of(200));
    hummock_free(blocks[count]);
  });
  CHECK(ending.aborted);
  CHECK(contains(ending.said, "double free: the block of 200 bytes is free already"));
}

TEST_CASE("the quarantine delays reuse until as much was freed after") {
  empty_quarantine();
  Quarantine limit("256K");
  char* block = block_of(1000);
  hummock_free(block);

  // A block of 1000 bytes takes 2 KiB at most: 128 more at least must be freed before it is let go.
  for (int freed = 0; freed < 128; ++freed) {
    char* other = block_of(1000);
    CHECK(other != block);
    hummock_free(other);
  }
  // It takes 1000 bytes at least.
  CHECK(contains(ending_of([&] {
                   block[0] = 1;
                   for (int freed = 0; freed < 300; ++freed) hummock_free(block_of(1000));
                 }).said,
                 "was written after the free"));
}

TEST_CASE("of blocks too large for the quarantine a few keep their addresses, without memory") {
  constexpr size_t kSize = size_t{40} << 20;
  void* freed = hummock_malloc(kSize);
  REQUIRE(freed != nullptr);
  memset(freed, 1, kSize);
  const size_t before = figures().resident;
  hummock_free(freed);
  if (before != 0 && !HUMMOCK_TEST_SANITIZED) CHECK(figures().resident + kSize / 4 * 3 <= before);
  for (int i = 0; i < 3; ++i) hummock_free(hummock_malloc(kSize));
  CHECK(contains(ending_of([&] { hummock_free(freed); }).said, "double free"));
  CHECK(contains(ending_of([&] {
                   static_cast<char*>(freed)[1] = 2;
                   checked::check_all();
                 }).said,
                 "was written after the free"));
  // More of them push it out; whoever has its addresses then may use them.
  for (int i = 0; i < 12; ++i) {
    void* block = hummock_malloc(kSize);
    REQUIRE(block != nullptr);
    memset(block, 3, kSize);
    hummock_free(block);
  }
  hummock_heap_t* heap = hummock_heap_create();
  hummock_heap_free(heap, hummock_heap_malloc(heap, kSize));
  hummock_heap_destroy(heap);
  for (int i = 0; i < 10; ++i) {
    void* block = hummock_malloc(kSize);
    REQUIRE(block != nullptr);
    memset(block, 3, kSize);
    hummock_free(block);
  }
}

TEST_CASE("realloc keeps the contents and the exact size") {
  char* block = nullptr;
  size_t before = 0;
  for (const size_t size :
       {size_t{10}, size_t{11}, size_t{5000}, 3 * kMiB, size_t{200}, size_t{1}, size_t{64}}) {
    INFO(size);
    char* resized = static_cast<char*>(hummock_realloc(block, size));
    REQUIRE(resized != nullptr);
    CHECK(resized != block);  // the old one rests in quarantine
    CHECK(hummock_usable_size(resized) == size);
    CHECK(all_are(resized, 7, before < size ? before : size));
    memset(resized, 7, size);
    block = resized;
    before = size;
  }
  errno = 0;
  CHECK(hummock_realloc(block, SIZE_MAX / 2 + 1) == nullptr);
  CHECK(errno == ENOMEM);
  CHECK(all_are(block, 7, before));
  CHECK(hummock_realloc(block, 0) == nullptr);
  CHECK(all_are(block, checked::kFreed, before));
}

TEST_CASE("aligned blocks are exact and guarded too") {
  for (size_t alignment = 8; alignment <= 4 * kMiB; alignment *= 2) {
    for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}}) {
      INFO(alignment << " " << size);
      char* block = static_cast<char*>(hummock_aligned_alloc(alignment, size));
      REQUIRE(block != nullptr);
      CHECK(support::is_aligned(block, alignment));
      CHECK(hummock_usable_size(block) == size);
      memset(block, 1, size);
      hummock_free_aligned_sized(block, alignment, size);
    }
  }
  for (const size_t alignment : {size_t{64}, size_t{4096}, kMiB}) {
    for (const ptrdiff_t at : {ptrdiff_t{-1}, ptrdiff_t{100}}) {
      INFO(alignment << " " << at);
      CHECK(ending_of([alignment, at] {
              char* block = static_cast<char*>(hummock_memalign(alignment, 100));
              block[at] = 1;
              hummock_free(block);
            }).aborted);
    }
  }
  char* moved = static_cast<char*>(hummock_memalign(4096, 100));
  memset(moved, 7, 100);
  moved = static_cast<char*>(hummock_realloc(moved, 300));
  REQUIRE(moved != nullptr);
  CHECK(all_are(moved, 7, 100));
  hummock_free(moved);
}

TEST_CASE("calloc is zero, also where blocks were used and poisoned") {
  Quarantine none("0");
  for (int round = 0; round < 3; ++round) {
    for (const size_t size : kSizes) {
      INFO(size);
      char* block = static_cast<char*>(hummock_calloc(size, 1));
      REQUIRE(block != nullptr);
      CHECK(hummock_usable_size(block) == size);
      CHECK(support::all_zero(block, 0, size));
      memset(block, 0xff, size);
      hummock_free(block);
    }
  }
  errno = 0;
  CHECK(hummock_calloc(SIZE_MAX / 2, 3) == nullptr);
  CHECK(errno == ENOMEM);
  errno = 0;
  CHECK(hummock_malloc(SIZE_MAX) == nullptr);
  CHECK(errno == ENOMEM);

  char* grown = static_cast<char*>(hummock_malloc_zero(100));
  grown = static_cast<char*>(hummock_realloc_zero(grown, 9000));
  REQUIRE(grown != nullptr);
  CHECK(support::all_zero(grown, 0, 9000));
  hummock_free(grown);
}
