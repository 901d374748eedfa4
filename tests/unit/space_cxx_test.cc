// space.hpp: spaces with an owner, and std::pmr containers in them.
#include <doctest/doctest.h>
#include <stdint.h>
#include <string.h>
#include <hummock/hummock.hpp>

#include <map>
#include <memory_resource>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "support/support.h"

TEST_CASE("space: blocks of its own alone") {
  hummock::space space(1 << 20);
  CHECK(space);
  for (size_t align = 1; align <= 4096; align *= 4) {
    char* block = static_cast<char*>(space.allocate(100, align));
    CHECK(support::is_aligned(block, align));
    CHECK(space.contains(block));
    CHECK(space.usable_size(block) >= 100);
    memset(block, 1, 100);
    block = static_cast<char*>(space.try_resize(block, 300));
    CHECK(block[99] == 1);
    space.deallocate(block);
  }
  space.deallocate(nullptr);
  CHECK(space.usable_size(nullptr) == 0);
  int local = 0;
  CHECK(!space.contains(&local));
  CHECK(space.stats().live_blocks == 0);
  CHECK(space.try_allocate(2 << 20) == nullptr);
  CHECK_THROWS_AS((void)space.allocate(2 << 20), std::bad_alloc);
  CHECK_THROWS_AS((void)space.allocate(SIZE_MAX, 64), std::bad_alloc);
}

TEST_CASE("space: moves, and what cannot be made") {
  static_assert(!std::is_copy_constructible_v<hummock::space> &&
                std::is_nothrow_move_constructible_v<hummock::space>);
  hummock::space first(1 << 20);
  void* block = first.allocate(10);
  hummock::space second = std::move(first);
  CHECK(!first);
  CHECK(first.try_allocate(10) == nullptr);
  CHECK(first.stats().bytes == 0);
  CHECK(second.contains(block));
  hummock::space third(1 << 16);
  third = std::move(second);
  CHECK(third.contains(block));
  hummock::space fourth(third.release());
  fourth.deallocate(block);
  CHECK(fourth.stats().live_blocks == 0);
  hummock_space_options_t options = {};
  options.initial = 1 << 20;
  options.policy = 99;
  CHECK_THROWS_AS(hummock::space{options}, std::system_error);
  options.initial = SIZE_MAX / 4 * 3;
  CHECK_THROWS((hummock::space{options}));
}

TEST_CASE("pmr containers in a space, until it is full") {
  hummock::space space(256 << 10), other(256 << 10);
  hummock::space_memory_resource resource(space), same(space), elsewhere(other);
  CHECK(resource.is_equal(same));
  CHECK(!resource.is_equal(elsewhere));
  CHECK(!resource.is_equal(*std::pmr::new_delete_resource()));
  {
    std::pmr::map<int, std::pmr::string> table(&resource);
    const auto fill = [&] {
      for (int i = 0;; ++i) table[i] = std::string(100, 'x');
    };
    CHECK_THROWS_AS(fill(), std::bad_alloc);
    const size_t held = table.size();
    CHECK(held > 500);
    for (const auto& [key, text] : table) {
      CHECK(space.contains(&key));
      if (!text.empty()) CHECK(space.contains(text.data()));  // the last one's text did not fit
    }
    table.clear();
    for (int i = 0; i < 500; ++i) table[i] = std::string(100, 'y');
  }
  CHECK(space.stats().live_blocks == 0);
}

TEST_CASE("a soak of pmr containers in a space") {
  hummock::space space(8 << 20);
  hummock::space_memory_resource resource(space);
  support::Random random(support::run_seed());
  {
    std::pmr::vector<std::pmr::vector<int>> rows(&resource);
    for (size_t i = 0; i < support::scaled(30000, 2000); ++i) {
      rows.emplace_back(random.below(200), 1);
      if (rows.size() > 200) rows.erase(rows.begin() + static_cast<long>(random.below(200)));
    }
  }
  CHECK(space.stats().live_blocks == 0);
}
