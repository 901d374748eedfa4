// How full a dense space is when it first refuses: sizes as likely in every doubling, three allocations
// for every two frees of a random live block.
#include <math.h>

#include <vector>

#include "space_support.h"

namespace {

double occupancy(size_t bytes, size_t largest, uint32_t policy, unsigned cache, uint64_t seed) {
  hummock_space_options_t options = support::space_of(bytes, HUMMOCK_SPACE_OWNER, policy);
  options.cache_blocks = cache != 0 ? 1024 : 0;
  options.cache_largest = cache;
  support::Space space(options);
  support::Random random(seed);
  struct Block {
    void* at;
    size_t size;
  };
  std::vector<Block> blocks;
  size_t live = 0;
  for (;;) {
    if (blocks.empty() || random.below(5) < 3) {
      const double draw = static_cast<double>(random.next() >> 11) * 0x1p-53;
      const size_t size = static_cast<size_t>(16 * exp(draw * log(static_cast<double>(largest) / 16)));
      void* p = hummock_space_malloc(space, size);
      if (p == nullptr) break;
      blocks.push_back({p, size});
      live += size;
    } else {
      const size_t i = random.below(blocks.size());
      hummock_space_free(space, blocks[i].at);
      live -= blocks[i].size;
      blocks[i] = blocks.back();
      blocks.pop_back();
    }
  }
  CHECK(support::is_sound(space));
  return static_cast<double>(live) / static_cast<double>(bytes);
}

// The mean of a few runs: a single one is a random number.
double mean_occupancy(size_t largest, uint32_t policy, unsigned cache = 0) {
  constexpr int kRuns = 4;
  double sum = 0;
  for (int run = 0; run < kRuns; ++run) {
    sum += occupancy(size_t{256} << 20, largest, policy, cache,
                     support::run_seed() + static_cast<uint64_t>(run));
  }
  MESSAGE("largest ", largest, " policy ", policy, " cache ", cache, ": ", sum / kRuns);
  return sum / kRuns;
}

}  // namespace

TEST_CASE("first refusal, dense") {
  support::HangGuard guard(850);
  CHECK(mean_occupancy(4096, HUMMOCK_SPACE_DENSE) >= 0.95);
  CHECK(mean_occupancy(65536, HUMMOCK_SPACE_DENSE) >= 0.95);
  CHECK(mean_occupancy(size_t{1} << 20, HUMMOCK_SPACE_DENSE) >= 0.86);
  CHECK(mean_occupancy(size_t{4} << 20, HUMMOCK_SPACE_DENSE) >= 0.77);
}

// What rests must not stand in the way of what is asked for.
TEST_CASE("first refusal, dense with a cache") {
  support::HangGuard guard(850);
  for (const unsigned cache : {4 << 10, 64 << 10, 256 << 10}) {
    CHECK(mean_occupancy(65536, HUMMOCK_SPACE_DENSE, cache) >= 0.95);
    CHECK(mean_occupancy(size_t{4} << 20, HUMMOCK_SPACE_DENSE, cache) >= 0.77);
  }
}

TEST_CASE("first refusal, proven") {
  CHECK(mean_occupancy(65536, HUMMOCK_SPACE_PROVEN) >= 0.6);
}
