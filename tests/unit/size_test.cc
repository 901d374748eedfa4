// Size classes as a caller sees them: good_size and the usable size of real blocks.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <stdint.h>

#include <algorithm>
#include <set>

#include "slab/size_class.h"
#include "support/figures.h"
#include "support/support.h"

namespace {
constexpr size_t kMiB = size_t{1} << 20;

// Every size up to 70,000, then ever wider steps with the sizes around powers of two.
template <class Visit>
void for_sizes(size_t most, Visit visit) {
  for (size_t size = 0; size <= 70000 && size <= most; ++size) visit(size);
  for (size_t power = size_t{1} << 17; power <= most; power *= 2) {
    for (size_t size : {power - 1, power, power + 1, power + power / 3, power + power / 2 + 1}) {
      if (size <= most) visit(size);
    }
  }
}
}  // namespace

TEST_CASE("good_size never falls, holds the size and is its own good_size") {
  size_t before = 0;
  bool monotone = true, holds = true, fixed = true;
  for_sizes(std::min<uint64_t>(uint64_t{1} << 40, PTRDIFF_MAX / 2), [&](size_t size) {
    const size_t room = hummock_good_size(size);
    monotone &= room >= before;
    holds &= room >= size && room > 0;
    fixed &= hummock_good_size(room) == room;
    before = room;
  });
  CHECK(monotone);
  CHECK(holds);
  CHECK(fixed);
}

TEST_CASE("good_size is 0 for what no block can be") {
  CHECK(hummock_good_size(SIZE_MAX) == 0);
  CHECK(hummock_good_size(size_t{PTRDIFF_MAX} + 1) == 0);
}

TEST_CASE("the waste of a class is bounded") {
  if (support::checked()) return;
  size_t small_misses = 0, waste_misses = 0;
  for_sizes(64 * kMiB, [&](size_t size) {
    const size_t room = hummock_good_size(size);
    if (size >= 1 && size <= 256) small_misses += room != (size + 15) / 16 * 16;
    if (size > 256) {
      const bool held = (room - size) * 8 < size + 128 || (size > 65536 && room - size < 65536);
      if (!held) MESSAGE(size, " gives ", room);
      waste_misses += !held;
    }
  });
  CHECK(small_misses == 0);
  CHECK(waste_misses == 0);
}

TEST_CASE("there are at most as many small sizes as classes") {
  if (support::checked()) return;
  std::set<size_t> rooms;
  for (size_t size = 0; size <= 65536; ++size) rooms.insert(hummock_good_size(size));
  CHECK(rooms.size() < HUMMOCK_CLASS_COUNT);
}

TEST_CASE("malloc(n) has the usable size good_size(n) foretells") {
  if (support::checked()) return;
  size_t misses = 0;
  for_sizes(64 * kMiB, [&](size_t size) {
    void* block = hummock_malloc(size);
    REQUIRE(block != nullptr);
    const size_t usable = hummock_usable_size(block);
    if (usable != hummock_good_size(size)) {
      if (misses < 5) MESSAGE(size, " gave ", usable, " not ", hummock_good_size(size));
      ++misses;
    }
    hummock_free(block);
  });
  CHECK(misses == 0);
}

TEST_CASE("the whole usable size may be written, and neighbours keep theirs") {
  constexpr size_t kNeighbours = 8;
  for (size_t size = 1; size <= 300000; size += size / 7 + 1) {
    char* blocks[kNeighbours];
    size_t rooms[kNeighbours];
    for (size_t i = 0; i < kNeighbours; ++i) {
      blocks[i] = static_cast<char*>(hummock_malloc(size));
      REQUIRE(blocks[i] != nullptr);
      rooms[i] = hummock_usable_size(blocks[i]);
      memset(blocks[i], static_cast<int>(i + 1), rooms[i]);
    }
    for (size_t i = 0; i < kNeighbours; ++i) {
      const bool kept =
          blocks[i][0] == static_cast<char>(i + 1) && memcmp(blocks[i], blocks[i] + 1, rooms[i] - 1) == 0;
      CHECK(kept);
      hummock_free(blocks[i]);
    }
  }
}

TEST_CASE("an aligned block is of the first class whose blocks are all aligned so") {
  using namespace hummock::slab;
  size_t misses = 0;
  for (size_t align = 1; align <= 2 * kMaxSmall; align *= 2) {
    for (size_t size = 0; size <= kMaxSmall + 1; ++size) {
      unsigned first = size > kMaxSmall ? kTiny : class_of(size == 0 ? 1 : size);
      while (first < kTiny && size_of(first) % align != 0) ++first;
      const size_t found = aligned_size(align, size);
      misses += (found == 0 ? kTiny : class_of(found)) != first;
    }
  }
  CHECK(misses == 0);
  CHECK(aligned_size(0, 100) == 112);
}
