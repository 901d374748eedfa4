// The proven policy: an adversary in a space of exactly the required size is never refused, and in a
// smaller one it is.
#include <vector>

#include "space_support.h"

namespace {

using support::Random;

// Fills the space with as many blocks as may live of each size that just needs the next larger slot, in
// turn, and frees them all before the next: what makes every order's slots as many as they can be.
bool fill_by_orders(hummock_space_t* space, size_t max_live, size_t largest, size_t smallest) {
  std::vector<void*> blocks;
  for (size_t size = smallest; size <= largest;) {
    bool refused = false;
    for (size_t live = 0; live + size <= max_live && !refused; live += size) {
      blocks.push_back(hummock_space_malloc(space, size));
      refused = blocks.back() == nullptr;
    }
    for (void* block : blocks) hummock_space_free(space, block);
    blocks.clear();
    if (refused) return false;
    size_t slot = 32;
    while (slot < size + 8) slot *= 2;
    size = slot - 8 + 1;  // the least that needs the next order
  }
  return true;
}

// Random frees and allocations that keep the live sum at its bound; every other block of a size stays.
bool fragment(hummock_space_t* space, Random& random, size_t max_live, size_t largest, size_t smallest) {
  struct Block {
    void* at;
    size_t size;
  };
  std::vector<Block> blocks;
  size_t live = 0;
  for (size_t phase = smallest; phase <= largest; phase = phase * 3 / 2 + 1) {
    for (size_t i = 0; i < blocks.size();) {
      if (i % 2 == 0 && live + phase > max_live / 2) {
        live -= blocks[i].size;
        hummock_space_free(space, blocks[i].at);
        blocks[i] = blocks.back();
        blocks.pop_back();
      } else {
        ++i;
      }
    }
    for (;;) {
      const size_t size = random.one_in(3) ? random.between(smallest, phase) : phase;
      if (live + size > max_live) break;
      void* p = hummock_space_malloc(space, size);
      if (p == nullptr) return false;
      live += size;
      blocks.push_back({p, size});
    }
  }
  for (const Block& block : blocks) hummock_space_free(space, block.at);
  return true;
}

hummock_space_t* make(size_t bytes, void* memory) {
  hummock_space_options_t options = support::space_of(bytes, HUMMOCK_SPACE_OWNER, HUMMOCK_SPACE_PROVEN);
  options.memory = memory;  // the caller's: no page is rounded up to
  return hummock_space_create(&options, nullptr);
}

struct Load {
  size_t max_live, largest, smallest;
};

}  // namespace

TEST_CASE("never refused at the required size, refused below it") {
  for (const Load& load : {Load{4096, 100, 100}, Load{1 << 20, 65536, 16}, Load{3000000, 4096, 24},
                           Load{100000, 100000, 1}, Load{999, 33, 7}, Load{size_t{1} << 23, 1 << 20, 1000}}) {
    CAPTURE(load.max_live);
    CAPTURE(load.largest);
    const size_t bytes = hummock_space_required_size(load.max_live, load.largest, load.smallest);
    REQUIRE(bytes > load.max_live);
    std::vector<char> room(bytes + 64);
    void* memory = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;

    hummock_space_t* space = make(bytes, memory);
    REQUIRE(space != nullptr);
    CHECK(fill_by_orders(space, load.max_live, load.largest, load.smallest));
    CHECK(fill_by_orders(space, load.max_live, load.largest, load.smallest));
    CHECK(support::figures(space).failures == 0);
    CHECK(support::is_sound(space));
    hummock_space_destroy(space);

    Random random(support::run_seed());
    space = make(bytes, memory);
    for (int round = 0; round < 10; ++round) {
      CHECK(fragment(space, random, load.max_live, load.largest, load.smallest));
    }
    CHECK(support::is_sound(space));
    hummock_space_destroy(space);

    // One smallest slot less (and what rounding to 16 may leave over): the adversary gets through.
    space = make(bytes - 64, memory);
    REQUIRE(space != nullptr);
    CHECK(!fill_by_orders(space, load.max_live, load.largest, load.smallest));
    hummock_space_destroy(space);
  }
}

TEST_CASE("required sizes that do not exist") {
  CHECK(hummock_space_required_size(100, 10, 20) == 0);
  CHECK(hummock_space_required_size(100, 200, 20) == 0);
  CHECK(hummock_space_required_size(SIZE_MAX, SIZE_MAX, 1) == 0);
  CHECK(hummock_space_required_size(size_t{1} << 40, size_t{1} << 39, 1) == 0);
  CHECK(hummock_space_required_size(1, 1, 0) != 0);
}
