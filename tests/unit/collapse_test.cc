// Small pages in use become huge ones, in ticks: which, when, and what meets it on the way.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "support/faked_huge_pages.h"
#include "support/support.h"

using namespace hummock::pages;
using namespace support::huge_pages;

TEST_CASE("full pages are collapsed, at most one in a while, and nothing slow is called under the lock") {
  if (!thp_possible()) return;
  With with("huge_pages:thp");
  std::vector<void*> blocks;
  for (int i = 0; i < 60000; ++i) blocks.push_back(hummock_malloc(1000));
  CHECK(says.huge > 0);
  says.collapse_ms = 1;  // so the next one is due in 50 ms
  for (int i = 0; i < 49; ++i) {
    collapse_one();
    pass(1);
  }
  CHECK(says.collapses == 1);
  for (int i = 0; i < 500; ++i) {
    collapse_one();
    pass(1);
  }
  CHECK(says.collapses >= 10);
  CHECK(says.collapses <= 12);
  for (int i = 0; i < 500; ++i) {
    collapse_one();
    pass(100);
  }
  CHECK(says.collapses < 40);  // each of the 30 huge pages once
  for (void* block : blocks) hummock_free(block);
  hummock_trim(0);
  CHECK(!says.locked);
}

TEST_CASE("a collapse that is refused is not tried again at once") {
  if (!thp_possible()) return;
  With with("huge_pages:thp");
  std::vector<void*> blocks;
  // More than the case above left behind, whose huge pages have had their turn.
  for (int i = 0; i < 80000; ++i) blocks.push_back(hummock_malloc(2000));
  says.collapse_error = EAGAIN;
  pass(100);
  for (int i = 0; i < 1000; ++i) collapse_one();
  CHECK(says.collapses == 1);
  pass(99);
  collapse_one();
  CHECK(says.collapses == 1);
  pass(1);
  for (int i = 0; i < 3; ++i) collapse_one();  // looks at the system's settings again, in two steps at most
  CHECK(says.collapses == 2);
  for (void* block : blocks) hummock_free(block);
}

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A heap that is large enough for huge pages: so many bytes at the start of each block are touched.
std::vector<char*> blocks_of_a_mib(size_t count, size_t touched) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back(static_cast<char*>(hummock_malloc(kMiB)));
    for (size_t at = 0; at < touched; at += 4096) blocks.back()[at] = 1;
  }
  return blocks;
}

void tick_for(uint64_t ms) {
  for (uint64_t i = 0; i < ms; ++i) {
    collapse_one();
    pass(1);
  }
}

void release_all(const std::vector<char*>& blocks) {
  for (char* block : blocks) hummock_free(block);
  hummock_trim(0);
}

}  // namespace

TEST_CASE("by default a large heap's huge pages are made of what is in use") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  const std::vector<char*> blocks = blocks_of_a_mib(300, kMiB);
  CHECK(says.huge + says.collapses == 0);
  CHECK(any_due());
  says.collapse_ms = 1;
  pass(60000);
  tick_for(520);
  CHECK(says.collapses >= 8);  // one in 50 ms
  CHECK(says.collapses <= 12);
  CHECK(says.huge == says.collapses);
  CHECK(says.small >= says.collapses);  // nothing becomes huge by itself
  CHECK(with.advised() == says.collapses * kHugePageSize);
  says.collapse_ms = 0;
  for (int i = 0; i < 400; ++i) collapse_one(), pass(100);
  CHECK(says.collapses > 60);    // some blocks stand where a case above had asked for huge pages
  CHECK(says.collapses <= 150);  // each once
  release_all(blocks);
  CHECK(with.advised() == 0);
  CHECK(!says.locked);
}

TEST_CASE("by default what is not in use stays on small pages") {
  if (!thp_possible()) return;
#if HUMMOCK_TEST_EMULATED
  if (os::page_size() > 4096) return;  // qemu's mincore answers for pages of 4 KiB
#endif
  hummock_trim(0);
  With with("");
  std::vector<char*> blocks = blocks_of_a_mib(300, kMiB * 7 / 10);
  pass(60000);
  tick_for(2000);
  CHECK(says.collapses == 0);
  CHECK(with.advised() == 0);
  // More is touched; and there is a heap that is full, but not large.
  for (char* block : blocks) memset(block, 1, kMiB);
  while (blocks.size() > 50) hummock_free(blocks.back()), blocks.pop_back();
  hummock_trim(0);
  const auto before = says.collapses;  // while it was large
  tick_for(2000);
  CHECK(says.collapses == before);
  release_all(blocks);
}

TEST_CASE("what another thread frees on huge pages goes back while their owner does nothing") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  std::vector<char*> blocks;
  for (size_t i = 0; i < 300 * kMiB / 1000; ++i) {
    blocks.push_back(static_cast<char*>(hummock_malloc(1000)));
    memset(blocks.back(), 1, 1000);
  }
  pass(60000);
  for (int i = 0; i < 400; ++i) collapse_one(), pass(100);
  const size_t huge = with.advised();
  CHECK(huge > 50 * kMiB);
  const auto stays = [](size_t i) { return i % 64 == 0; };  // so no slab ends
  std::thread([&] {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!stays(i)) hummock_free(blocks[i]);
    }
  }).join();
  CHECK(with.advised() < huge / 2);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (stays(i)) hummock_free(blocks[i]);
  }
  hummock_trim(0);
}

TEST_CASE("what is given back while its page becomes huge reads as zeros for its next owner alone") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  static std::vector<char*> blocks;
  blocks = blocks_of_a_mib(300, kMiB);
  // Another thread's purge makes the page small again, which is loose meanwhile.
  says.during_collapse = [](char* page) {
    for (char*& block : blocks) {
      if (block < page || block >= page + kHugePageSize) continue;
      hummock_free(block);
      block = blocks.back();
      blocks.pop_back();
      break;
    }
    hummock_trim(0);
  };
  pass(60000);
  for (int i = 0; i < 1000 && says.collapses == 0; ++i) tick_for(1);
  REQUIRE(says.collapses == 1);
  CHECK(with.advised() == 0);
  std::vector<char*> again;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      again.push_back(static_cast<char*>(hummock_calloc(1, kMiB)));
      REQUIRE(again.back() != nullptr);
      CHECK(support::all_zero(again.back(), 0, kMiB));
      memset(again.back(), 0xff, kMiB);
    }
    for (char* block : again) hummock_free(block);
    again.clear();
  }
  release_all(blocks);
}

TEST_CASE("by default a refused collapse leaves small pages") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  const std::vector<char*> blocks = blocks_of_a_mib(300, kMiB);
  says.collapse_error = EINVAL;
  pass(60000);
  tick_for(99);
  CHECK(says.collapses == 1);
  CHECK(with.refusals() == 1);
  CHECK(with.advised() == 0);
  release_all(blocks);
}
