// Totals by tag: what threads draw from slabs is charged to the tag that they have.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kCache = size_t{16} << 10;  // what a thread has at hand of a class at first, and more

hummock_tag_stats_t total(uint32_t tag) {
  hummock_tag_stats_t stats = {sizeof stats, 0, 0};
  const int error = hummock_tag_stats(tag, &stats);
  if (error != 0) REQUIRE(error == ENOENT);
  return stats;
}

// Draws so many bytes, in blocks that live until the end.
void draw(std::vector<void*>* live, size_t bytes, size_t size) {
  for (size_t drawn = 0; drawn < bytes; drawn += size) live->push_back(hummock_malloc(size));
}

void free_all(const std::vector<void*>& live) {
  for (void* block : live) hummock_free(block);
}

}  // namespace

TEST_CASE("what a thread draws is charged to its tag") {
  std::vector<void*> live;
  CHECK(hummock_tag(71001) == 0);
  draw(&live, 1 << 20, 256);
  CHECK(hummock_tag(71002) == 71001);
  draw(&live, 2 << 20, 1024);
  draw(&live, 3 << 20, 100000);
  CHECK(hummock_tag(0) == 71002);
  draw(&live, 4 << 20, 256);
  const hummock_tag_stats_t one = total(71001), two = total(71002);
  CHECK(one.bytes >= (1 << 20) - kCache);
  CHECK(one.bytes <= (1 << 20) + kCache);
  CHECK(one.blocks == one.bytes / 256);
  const size_t rooms = (2 << 20) + ((3 << 20) + 99999) / 100000 * (128 << 10);
  CHECK(two.bytes >= rooms - kCache);
  CHECK(two.bytes <= rooms + kCache);
  free_all(live);
  CHECK(total(71001).bytes == one.bytes);  // frees take nothing off
}

TEST_CASE("threads of one tag add up, also those that have ended") {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      hummock_tag(72001);
      std::vector<void*> live;
      draw(&live, 1 << 20, 512);
      free_all(live);
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(total(72001).bytes >= (4 << 20) - 4 * kCache);
  CHECK(total(72001).bytes <= (4 << 20) + 4 * kCache);
  std::thread([] { CHECK(hummock_tag(0) == 0); }).join();  // a new thread begins with 0
}

TEST_CASE("blocks that come and go within the cache, and those of heaps, are not counted") {
  hummock_tag(73001);
  std::vector<void*> live;
  draw(&live, kCache, 64);
  const uint64_t before = total(73001).bytes;
  for (int i = 0; i < 100000; ++i) hummock_free(hummock_malloc(64));
  hummock_heap_t* heap = hummock_heap_create();
  for (int i = 0; i < 1000; ++i) hummock_heap_malloc(heap, 1000);
  hummock_heap_destroy(heap);
  CHECK(total(73001).bytes <= before + kCache);
  hummock_tag(0);
  free_all(live);
}

TEST_CASE("the others share a row when there are too many") {
  std::set<uint32_t> own;
  const uint64_t others = total(HUMMOCK_TAG_OTHERS).bytes;
  for (uint32_t tag = 100000; tag < 100100; ++tag) {
    hummock_tag(tag);
    hummock_free(hummock_malloc(200000));
    hummock_tag_stats_t stats = {sizeof stats, 0, 0};
    if (hummock_tag_stats(tag, &stats) == 0) own.insert(tag);
  }
  hummock_tag(0);
  CHECK(own.size() < HUMMOCK_TAG_COUNT);
  CHECK(own.size() >= HUMMOCK_TAG_COUNT - 10);
  CHECK(total(HUMMOCK_TAG_OTHERS).bytes - others >= (100 - own.size()) * 200000);
  hummock_tag_stats_t stats = {sizeof stats, 0, 0};
  CHECK(hummock_tag_stats(100099, &stats) == ENOENT);
  CHECK(hummock_tag_stats(0, nullptr) == EINVAL);
}
