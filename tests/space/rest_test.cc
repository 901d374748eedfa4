// The cache of a space with an owner: what rests there, when it gives way, and misuse.
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
