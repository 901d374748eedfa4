// The cache of a space with an owner: what rests there, when it gives way, and misuse.
#include <errno.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "space_support.h"
#include "support/capture.h"

namespace {

using support::Space;
using support::space_of;

constexpr size_t kMiB = size_t{1} << 20;

hummock_space_options_t resting_space(size_t bytes) {
  hummock_space_options_t options = space_of(bytes);
  options.cache_blocks = 100;
  options.cache_largest = 64 << 10;
  return options;
}

// One of the calls that end a run: what it gives, or null.
void* end_run_by(int call, hummock_space_t* space, size_t wanted, void** before) {
  switch (call) {
    case 0:
      return hummock_space_malloc(space, wanted);
    case 1:
      return hummock_space_memalign(space, 4096, wanted);
    case 2:
      return *before = hummock_space_realloc(space, *before, wanted);
    case 3:
      return hummock_space_calloc(space, 1, wanted);
    case 4:
      hummock_space_flush(space);
      return nullptr;
    case 5:
      CHECK(hummock_space_expand(space, kMiB) == 0);
      return nullptr;
    case 6:
      CHECK(hummock_space_shrink(space, kMiB) == kMiB);
      return nullptr;
    default:
      return hummock_space_malloc(space, 100);
  }
}

void check_all_free(hummock_space_t* space) {
  hummock_space_flush(space);
  CHECK(support::figures(space).free_ranges == 1);
  CHECK(support::figures(space).used == 0);
  CHECK(support::figures(space).failures == 0);
}

}  // namespace

TEST_CASE("an owner's cache: what was freed last comes back first, by its size") {
  Space space(resting_space(16 * kMiB));
  for (const size_t size : {1, 24, 25, 1000, 8150, 8168, 8169, 8200, 30000, 65500}) {
    CAPTURE(size);
    void* first = hummock_space_malloc(space, size);
    void* second = hummock_space_malloc(space, size);
    const size_t room = hummock_space_usable_size(space, first);
    hummock_space_free(space, first);
    hummock_space_free(space, second);
    CHECK(support::figures(space).cache_free_blocks == 2);
    CHECK(hummock_space_malloc(space, size) == second);
    CHECK(hummock_space_malloc(space, room) == first);
    CHECK(hummock_space_usable_size(space, first) == room);
    CHECK(support::figures(space).cache_free == 0);
    hummock_space_free(space, hummock_space_realloc(space, first, 2 * room));
    hummock_space_free(space, second);
    hummock_space_flush(space);
    CHECK(support::figures(space).live_blocks == 0);
    CHECK(support::figures(space).free_ranges == 1);
  }
  void* aligned = hummock_space_memalign(space, 256, 100);  // only plain blocks rest
  hummock_space_free(space, aligned);
  void* large = hummock_space_malloc(space, 66000);
  hummock_space_free(space, large);
  CHECK(support::figures(space).cache_free_blocks == 0);
  CHECK(support::is_sound(space));
}

TEST_CASE("an owner's cache holds as many of a size as was asked for, and figures add up") {
  Space space(resting_space(16 * kMiB));
  std::vector<void*> blocks;
  for (int i = 0; i < 150; ++i) blocks.push_back(hummock_space_malloc(space, 200));
  for (void* block : blocks) hummock_space_free(space, block);
  const hummock_space_stats_t stats = support::figures(space);
  CHECK(stats.cache_free_blocks == 100);
  CHECK(stats.cache_free == 100 * 208);
  CHECK(stats.used == 0);
  CHECK(stats.free == stats.pool_free + stats.cache_free);
  CHECK(stats.bytes == stats.free + stats.overhead);
  CHECK(stats.live_blocks == 100);  // as those of other caches
  CHECK(support::is_sound(space));
  hummock_space_flush(space);
  CHECK(support::figures(space).cache_free == 0);
  CHECK(support::figures(space).free_ranges == 1);
}

TEST_CASE("what rests is taken when nothing else is left, and shrink finds it") {
  hummock_space_options_t options = resting_space(kMiB);
  options.maximum = 8 * kMiB;
  options.expand = 0;
  Space space(options);
  REQUIRE(hummock_space_expand(space, 3 * kMiB) == 0);
  std::vector<void*> blocks;
  for (int i = 0; i < 90; ++i) blocks.push_back(hummock_space_malloc(space, 30000));
  for (void* block : blocks) hummock_space_free(space, block);
  CHECK(support::figures(space).cache_free > 2 * kMiB);
  void* most = hummock_space_malloc(space, 3 * kMiB);
  CHECK(most != nullptr);
  CHECK(support::figures(space).failures == 0);
  CHECK(support::figures(space).cache_free == 0);
  // Now there is no long range: nothing comes to rest.
  hummock_space_free(space, hummock_space_malloc(space, 900000));
  void* wall = hummock_space_malloc(space, 950000);
  hummock_space_free(space, hummock_space_malloc(space, 100));
  CHECK(support::figures(space).cache_free == 0);
  hummock_space_free(space, wall);
  hummock_space_free(space, most);
  for (int i = 0; i < 90; ++i) blocks[static_cast<size_t>(i)] = hummock_space_malloc(space, 30000);
  for (void* block : blocks) hummock_space_free(space, block);
  CHECK(support::figures(space).cache_free > 2 * kMiB);
  CHECK(hummock_space_shrink(space, SIZE_MAX) == 3 * kMiB);
  CHECK(support::is_sound(space));
}

TEST_CASE("misuse of blocks at rest") {
  Space space(resting_space(16 * kMiB));
  hummock_space_t* s = space;
  for (const size_t size : {100, 20000}) {
    void* block = hummock_space_malloc(space, size);
    const auto died = [&](const char* call, auto act) {
      const support::Ending ending = support::ending_of([&] { hummock_space_free(s, block), act(); });
      INFO(ending.said);
      CHECK(ending.aborted);
      CHECK(ending.said.find("double free") != std::string::npos);
      CHECK(ending.said.find(call) != std::string::npos);
    };
    died("free(", [&] { hummock_space_free(s, block); });
    died("realloc(", [&] { hummock_space_realloc(s, block, 8); });
    died("usable_size(", [&] { hummock_space_usable_size(s, block); });
    died("free(", [&] { std::thread([&] { hummock_space_free(s, block); }).join(); });
    const support::Ending inside =
        support::ending_of([&] { hummock_space_free(s, static_cast<char*>(block) + 16); });
    CHECK(inside.aborted);
    hummock_space_free(s, nullptr);
    hummock_space_free(s, block);
  }
}

namespace {

struct Seen {
  size_t live, free;
};

Seen walked(hummock_space_t* space) {
  Seen seen = {0, 0};
  const auto visit = [](void* context, void*, size_t, int live) {
    ++(live != 0 ? static_cast<Seen*>(context)->live : static_cast<Seen*>(context)->free);
    return 1;
  };
  CHECK(hummock_space_walk(space, visit, &seen) == 0);
  return seen;
}

std::vector<void*> long_blocks(hummock_space_t* space, size_t count, size_t size = 200000) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back(hummock_space_malloc(space, size + 16 * i));
  return blocks;
}

}  // namespace

TEST_CASE("long blocks stand one behind the other, and freed in any order they are one range again") {
  Space space(resting_space(16 * kMiB));
  const size_t all = support::figures(space).largest_free;
  for (const int order : {0, 1, 2}) {
    CAPTURE(order);
    std::vector<void*> blocks = long_blocks(space, 40);
    for (size_t i = 1; i < blocks.size(); ++i) CHECK(blocks[i] > blocks[i - 1]);
    CHECK(support::figures(space).live_blocks == 40);
    CHECK(walked(space).live == 40);
    if (order == 1) std::reverse(blocks.begin(), blocks.end());
    if (order == 2) std::swap(blocks[7], blocks[21]);
    for (size_t i = 0; i < blocks.size(); ++i) {
      hummock_space_free(space, blocks[i]);
      const hummock_space_stats_t stats = support::figures(space);
      const Seen seen = walked(space);
      CHECK(stats.live_blocks == seen.live);
      CHECK(stats.live_blocks - stats.cache_free_blocks == 39 - i);
      CHECK(stats.free_ranges == seen.free);
      CHECK(stats.bytes == stats.free + stats.used + stats.overhead);
    }
    hummock_space_flush(space);
    CHECK(support::figures(space).free_ranges == 1);
    CHECK(support::figures(space).largest_free == all);
    CHECK(support::figures(space).used == 0);
  }
}

TEST_CASE("a run of freed blocks ends when more is wanted, for any call") {
  hummock_space_options_t options = resting_space(8 * kMiB);
  options.maximum = 16 * kMiB;
  Space space(options);
  for (int call = 0; call < 7; ++call) {
    CAPTURE(call);
    void* before = hummock_space_malloc(space, 100000);
    std::vector<void*> blocks = long_blocks(space, 20);
    void* wall = hummock_space_malloc(space, 100);
    for (size_t i = 0; i < 10; ++i) hummock_space_free(space, blocks[i]);
    const hummock_space_stats_t stats = support::figures(space);
    CHECK(stats.cache_free_blocks >= 9);
    CHECK(stats.cache_free >= 9 * size_t{200000});
    const size_t wanted = 10 * size_t{200000};
    void* got = end_run_by(call, space, wanted, &before);
    CHECK((got != nullptr) == (call < 4));
    if (call != 1 && call != 5) CHECK(support::figures(space).cache_free == 0);
    CHECK(support::is_sound(space));
    if (got != before) hummock_space_free(space, got);
    for (size_t i = 10; i < 20; ++i) hummock_space_free(space, blocks[i]);
    hummock_space_free(space, before);
    hummock_space_free(space, wall);
    check_all_free(space);
  }
}

TEST_CASE("a run that has reached the open range is one with it for whatever call comes next") {
  constexpr size_t kWanted = 5000000;  // longer than the open range alone
  hummock_space_options_t options = resting_space(8 * kMiB);
  options.maximum = 16 * kMiB;
  for (int call = 0; call < 8; ++call) {
    CAPTURE(call);
    Space space(options);
    if (call == 6) CHECK(hummock_space_expand(space, kMiB) == 0);  // it shrinks to no less than it began with
    const size_t all = support::figures(space).largest_free;
    void* before = hummock_space_malloc(space, 100000);
    const std::vector<void*> blocks = long_blocks(space, 20);
    for (size_t i = 9; i < 20; ++i)
      hummock_space_free(space, blocks[i]);  // of the first no run is expected yet
    CHECK(support::figures(space).cache_free_blocks == 10);
    CHECK(support::is_sound(space));
    void* got = end_run_by(call, space, kWanted, &before);
    CHECK((got != nullptr) == (call < 4 || call == 7));
    CHECK(support::is_sound(space));
    CHECK(walked(space).live == support::figures(space).live_blocks);
    if (got != before) hummock_space_free(space, got);
    for (size_t i = 0; i < 9; ++i) hummock_space_free(space, blocks[i]);
    hummock_space_free(space, before);
    check_all_free(space);
    if (call < 5) CHECK(support::figures(space).largest_free == all);
  }
}

TEST_CASE("what cannot be is refused behind a run, too") {
  for (const size_t impossible : {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX / 2, 9 * kMiB, 8 * kMiB}) {
    CAPTURE(impossible);
    Space space(resting_space(8 * kMiB));
    const std::vector<void*> blocks = long_blocks(space, 20);
    for (void* block : blocks) hummock_space_free(space, block);
    CHECK(support::figures(space).cache_free_blocks == 19);
    errno = 0;
    CHECK(hummock_space_malloc(space, impossible) == nullptr);
    CHECK(errno == ENOMEM);
    CHECK(support::is_sound(space));
    void* block = hummock_space_malloc(space, 7 * kMiB);
    CHECK(block != nullptr);
    hummock_space_free(space, block);
  }
}

TEST_CASE("blocks of 2 KiB and more are whole lines, also those that realloc cuts") {
  Space space(resting_space(16 * kMiB));
  for (const size_t size : {2048, 2049, 4096, 5000, 8100, 20000, 65536, 300000}) {
    CAPTURE(size);
    char* first = static_cast<char*>(hummock_space_malloc(space, size));
    char* second = static_cast<char*>(hummock_space_malloc(space, size));
    CHECK((hummock_space_usable_size(space, first) + 8) % 64 == 0);
    CHECK(hummock_space_usable_size(space, first) - size < 64);
    CHECK((second - first) % 64 == 0);
    CHECK(hummock_space_realloc(space, second, size / 2 + 1024) == second);
    CHECK((hummock_space_usable_size(space, second) + 8) % 64 == 0);
    hummock_space_free(space, first);
    hummock_space_free(space, second);
    hummock_space_flush(space);
  }
  CHECK(support::figures(space).free_ranges == 1);
}

TEST_CASE("all of a space can be had, whatever was cut and freed before") {
  Space space(resting_space(4 * kMiB));
  const size_t all = support::figures(space).largest_free - 8;
  for (const size_t size : {100, 70000, 200000, 1000000}) {
    CAPTURE(size);
    std::vector<void*> blocks;
    while (void* p = hummock_space_malloc(space, size)) blocks.push_back(p);
    CHECK(support::figures(space).largest_free < size + 16);
    for (size_t i = 0; i < blocks.size(); i += 2) hummock_space_free(space, blocks[i]);
    for (size_t i = 0; i < blocks.size(); i += 2) {  // and again
      blocks[i] = hummock_space_malloc(space, size);
      CHECK(blocks[i] != nullptr);
    }
    for (void* block : blocks) hummock_space_free(space, block);
    void* whole = hummock_space_malloc(space, all);
    CHECK(whole != nullptr);
    hummock_space_free(space, whole);
    CHECK(support::is_sound(space));
  }
}

TEST_CASE("a full space gives what just fits, also where whole lines do not") {
  for (size_t size = 2049; size < 9000; size += 48) {
    CAPTURE(size);
    Space space(resting_space(kMiB));
    void* hole = hummock_space_memalign(space, 32, size + 16);  // not whole lines
    while (hummock_space_malloc(space, 1) != nullptr) {
    }
    hummock_space_free(space, hole);
    void* block = hummock_space_malloc(space, size);
    REQUIRE(block != nullptr);
    CHECK(hummock_space_realloc(space, block, hummock_space_usable_size(space, block)) == block);
    CHECK(hummock_space_realloc(space, block, size - 1) == block);
  }
}

TEST_CASE("what is freed does not raise the peak that a program needs") {
  Space space(resting_space(16 * kMiB));
  for (int i = 0; i < 200; ++i) {
    void* first = hummock_space_malloc(space, 300000);
    void* second = hummock_space_malloc(space, 300000);
    hummock_space_free(space, first);
    hummock_space_free(space, second);
  }
  CHECK(support::figures(space).peak <= 3 * (300000 + 32));
}

TEST_CASE("what another thread freed and the owner frees again is told when the owner takes it back") {
  for (const uint32_t policy : {HUMMOCK_SPACE_DENSE, HUMMOCK_SPACE_PROVEN}) {
    for (const uint32_t cached : {0u, 64u}) {
      if (policy == HUMMOCK_SPACE_PROVEN && cached != 0) continue;
      CAPTURE(policy);
      CAPTURE(cached);
      hummock_space_options_t options = support::space_of(4 * kMiB, HUMMOCK_SPACE_OWNER, policy);
      options.cache_blocks = cached;
      Space space(options);
      hummock_space_t* s = space;
      for (const bool again : {false, true}) {
        void* block = hummock_space_malloc(s, 100);
        std::thread([&] { hummock_space_free(s, block); }).join();
        const support::Ending ending = support::ending_of([&] {
          hummock_space_free(s, block);
          if (again) memset(hummock_space_malloc(s, 100), 1, 100);  // the same block, maybe
          for (int i = 0; i < 100; ++i) hummock_space_free(s, hummock_space_malloc(s, 3000));
        });
        CHECK(ending.aborted);
        CHECK(ending.said.find("double free") != std::string::npos);
      }
    }
  }
}

TEST_CASE("others free long blocks, misuse of a run is found") {
  Space space(resting_space(16 * kMiB));
  hummock_space_t* s = space;
  std::vector<void*> blocks = long_blocks(space, 20);
  std::thread([&] {
    for (size_t i = 10; i < 20; ++i) hummock_space_free(s, blocks[i]);
  }).join();
  for (size_t i = 0; i < 6; ++i) hummock_space_free(space, blocks[i]);
  for (const size_t i : {size_t{0}, size_t{3}, size_t{5}, size_t{12}}) {
    CAPTURE(i);
    const support::Ending ending = support::ending_of([&] { hummock_space_free(s, blocks[i]); });
    CHECK((ending.aborted || i == 12));  // what others freed is looked at when it is taken back
    if (i != 12) CHECK(ending.said.find("double free") != std::string::npos);
    const support::Ending grown = support::ending_of([&] { hummock_space_realloc(s, blocks[i], 400000); });
    CHECK((grown.aborted || i == 12));
  }
  hummock_space_free(space, hummock_space_malloc(space, 5000000));
  const support::Ending after = support::ending_of([&] { hummock_space_free(s, blocks[4]); });
  CHECK(after.aborted);
  for (size_t i = 6; i < 10; ++i) hummock_space_free(space, blocks[i]);
  for (int i = 0; i < 10; ++i) hummock_space_free(space, hummock_space_malloc(space, 900000));
  hummock_space_flush(space);
  CHECK(support::figures(space).used == 0);
  CHECK(support::figures(space).free_ranges == 1);
}
