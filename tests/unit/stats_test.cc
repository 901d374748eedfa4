// Statistics: figures agree with each other and with what was done, and come down after frees.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <stddef.h>
#include <string.h>

#include <string>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

using support::figures;

namespace {
constexpr size_t kMiB = size_t{1} << 20;

void check_consistent(const hummock_stats_t& stats) {
  CHECK(stats.live <= stats.committed);
  CHECK(stats.committed + stats.dirty <= stats.mapped);
  CHECK(stats.peak >= stats.committed + stats.dirty);
  CHECK(stats.large_bytes <= stats.live);
  CHECK(stats.metadata > 0);
  CHECK(stats.classes > 0);
  CHECK(stats.classes <= HUMMOCK_CLASS_COUNT);
  size_t rooms = stats.large_bytes;
  for (size_t i = 1; i < stats.classes; ++i) {
    const hummock_class_stats_t& each = stats.per_class[i];
    if (i + 1 < stats.classes) CHECK(each.block_size > stats.per_class[i - 1].block_size);  // the last is 8
    if (each.live_blocks != 0) CHECK(each.slabs > 0);
    rooms += each.live_blocks * each.block_size;
  }
  // Blocks that rest in caches may be in one figure and not in the other.
  CHECK(rooms <= stats.live + kMiB);
  CHECK(stats.live <= rooms + kMiB);
}

struct Blocks {
  std::vector<void*> all;
  void add(size_t count, size_t size) {
    for (size_t i = 0; i < count; ++i) {
      all.push_back(hummock_malloc(size));
      REQUIRE(all.back() != nullptr);
      memset(all.back(), 1, size);
    }
  }
  void end() {
    for (void* block : all) hummock_free(block);
    all.clear();
  }
};

size_t class_of(const hummock_stats_t& stats, size_t size) {
  for (size_t i = 1; i < stats.classes; ++i) {
    if (stats.per_class[i].block_size >= size) return i;
  }
  return 0;
}
}  // namespace

TEST_CASE("bad arguments") {
  CHECK(hummock_stats(nullptr) == EINVAL);
  hummock_stats_t stats = {};
  CHECK(hummock_stats(&stats) == EINVAL);
  stats.size = sizeof(size_t);
  CHECK(hummock_stats(&stats) == EINVAL);
}

TEST_CASE("a caller of an older header gets only the fields it knows") {
  struct {
    hummock_stats_t stats;
    size_t fence;
  } both;
  memset(&both, 0x5A, sizeof(both));
  both.stats.size = offsetof(hummock_stats_t, resident);
  CHECK(hummock_stats(&both.stats) == 0);
  constexpr auto kUntouched = static_cast<size_t>(0x5A5A5A5A5A5A5A5Au);
  CHECK(both.stats.mapped == kUntouched);
  CHECK(both.stats.resident == kUntouched);
  CHECK(both.stats.dirty != kUntouched);
  both.stats.size = sizeof(hummock_stats_t) + sizeof(size_t);
  CHECK(hummock_stats(&both.stats) == 0);
}

TEST_CASE("figures follow what is allocated and freed") {
  support::HangGuard guard(120);
  hummock_free(hummock_malloc(10));
  hummock_trim(0);
  const hummock_stats_t before = figures();
  check_consistent(before);
  Blocks blocks;
  for (size_t size : {16, 64, 100, 1000, 5000, 30000}) blocks.add(8 * kMiB / size, size);
  const hummock_stats_t full = figures();
  check_consistent(full);
  CHECK(full.live >= before.live + 47 * kMiB);
  CHECK(full.live <= before.live + 60 * kMiB);
  CHECK(full.committed >= before.committed + 46 * kMiB);
  CHECK(full.resident >= (HUMMOCK_TEST_SANITIZED ? 0 : 46 * kMiB));
  CHECK(full.mapped >= 47 * kMiB);
  blocks.end();
  if (support::checked()) return;
  hummock_trim(0);
  const hummock_stats_t after = figures();
  check_consistent(after);
  CHECK(after.live <= before.live + kMiB);
  CHECK(after.committed <= before.committed + 4 * kMiB);
  CHECK(after.peak >= full.committed);
  CHECK(after.purged > before.purged);
}

TEST_CASE("each class counts its own blocks") {
  if (support::checked()) return;
  const hummock_stats_t before = figures();
  for (size_t size : {16, 200, 300, 3000, 20000}) {
    Blocks blocks;
    blocks.add(10000, size);
    const hummock_stats_t full = figures();
    const size_t index = class_of(full, size);
    CAPTURE(size);
    CHECK(full.per_class[index].block_size == hummock_good_size(size));
    const size_t more = full.per_class[index].live_blocks - before.per_class[index].live_blocks;
    // Blocks of this class freed before may rest in this thread's bins and count as live.
    CHECK(more + 4200 >= 10000);
    CHECK(more <= 10000 + 4200);
    CHECK(full.per_class[index].slabs >= 10000 * size / (4 * kMiB));
    blocks.end();
  }
}

TEST_CASE("large blocks are counted one by one") {
  if (support::checked()) return;
  const hummock_stats_t before = figures();
  Blocks blocks;
  for (size_t size : {100000, 1000000, 10000000, 50000000}) blocks.add(3, size);
  const hummock_stats_t full = figures();
  CHECK(full.large_blocks == before.large_blocks + 12);
  CHECK(full.large_bytes >= before.large_bytes + 183300000);
  CHECK(full.large_bytes <= before.large_bytes + 185500000);
  check_consistent(full);
  blocks.end();
  const hummock_stats_t after = figures();
  CHECK(after.large_blocks == before.large_blocks);
  CHECK(after.large_bytes == before.large_bytes);
}

TEST_CASE("threads are counted while they live") {
  const size_t before = figures().threads;
  support::in_thread([&] {
    hummock_free(hummock_malloc(10));
    CHECK(figures().threads == before + 1);
  });
  CHECK(figures().threads == before);
}

TEST_CASE("what a dead thread freed is free, what it left is live") {
  if (support::checked()) return;
  Blocks left;
  const size_t before = figures().live;
  support::in_thread([&] {
    left.add(1000, 500);
    Blocks own;
    own.add(10000, 500);
    own.end();
  });
  const size_t room = 1000 * hummock_good_size(500);
  CHECK(figures().live >= before + room);
  CHECK(figures().live <= before + room + 65536);
  left.end();
  CHECK(figures().live <= before + 65536);
}

TEST_CASE("statistics may be taken while threads work") {
  support::HangGuard guard(120);
  std::vector<std::thread> crew;
  std::vector<char> lost(3);
  for (size_t t = 0; t < lost.size(); ++t) {
    crew.emplace_back([&, t] {
      support::Random random(t);
      void* blocks[64] = {};
      for (size_t i = 0; i < support::scaled(300000, 2000); ++i) {
        void*& block = blocks[random.below(64)];
        hummock_free(block);
        block = hummock_malloc(random.size_up_to(200000));
        if (block == nullptr) lost[t] = 1;
      }
      for (void* block : blocks) hummock_free(block);
    });
  }
  for (size_t i = 0; i < support::scaled(200, 20); ++i) {
    const hummock_stats_t stats = figures();
    CHECK(stats.classes <= HUMMOCK_CLASS_COUNT);
    CHECK(stats.live < uint64_t{1} << 40);
    if (i % 10 == 0) hummock_trim(0);
  }
  for (std::thread& thread : crew) thread.join();
  for (char each : lost) CHECK(each == 0);
  check_consistent(figures());
}

TEST_CASE("figures as JSON fit the room that they are given") {
  void* block = hummock_malloc(1000);
  const size_t length = hummock_stats_json(nullptr, 0);
  CHECK(length > 500);
  std::string text(length + 1000, 'x');
  const size_t written = hummock_stats_json(text.data(), text.size());
  REQUIRE(written < text.size());
  CHECK(strlen(text.c_str()) == written);
  CHECK(text.rfind("{\"version\":1,\"pid\":", 0) == 0);
  CHECK(text[written - 1] == '}');
  char few[10] = "yyyyyyyyy";
  CHECK(hummock_stats_json(few, 5) + 1000 > length);
  CHECK(std::string(few) == "{\"ve");
  CHECK(few[5] == 'y');
  hummock_free(block);
}

namespace {

uint64_t total(const char* name) {
  std::string text(hummock_stats_json(nullptr, 0) + 4096, '\0');
  text.resize(hummock_stats_json(text.data(), text.size()));
  const std::string key = std::string("\"") + name + "\":";
  const size_t at = text.find(key);
  REQUIRE(at != std::string::npos);
  return strtoull(text.c_str() + at + key.size(), nullptr, 10);
}

}  // namespace

TEST_CASE("memory that is in use again before it is given back is told, by the ways that it takes") {
  constexpr size_t kMiB = size_t{1} << 20;
  hummock_free(hummock_malloc(kMiB));
  char decay[32];
  REQUIRE(hummock_option_get("decay_ms", decay, sizeof(decay)) == 0);
  REQUIRE(hummock_option_set("decay_ms", "3600000") == 0);  // nothing goes for its age, however slow all is
  for (const size_t size : {100000 * size_t{1}, kMiB, 3 * kMiB, 20 * kMiB}) {
    CAPTURE(size);
    hummock_free(hummock_malloc(size));
    const uint64_t reused = total("reused"), drawn = total("drawn_bytes"), blocks = total("drawn_blocks");
    for (int i = 0; i < 10; ++i) hummock_free(hummock_malloc(size));
    CHECK(total("reused") - reused >= 9 * size);
    CHECK(total("drawn_bytes") - drawn >= 10 * size);
    CHECK(total("drawn_bytes") - drawn < 10 * size + 2 * kMiB);
    CHECK(total("drawn_blocks") - blocks == 10);
  }
  CHECK(hummock_option_set("decay_ms", decay) == 0);
}
