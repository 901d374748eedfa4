// Live blocks one by one, the use of a slab, and names of heaps.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

namespace {

using Blocks = std::map<void*, size_t>;

int note(void* context, void* block, size_t size) {
  auto* blocks = static_cast<Blocks*>(context);
  CHECK(blocks->emplace(block, size).second);  // once
  return 1;
}

Blocks walked(hummock_heap_t* heap) {
  Blocks blocks;
  CHECK(hummock_heap_walk(heap, note, &blocks) == 0);
  return blocks;
}

// Of all kinds: smallest, of every class, spans, and with mappings of their own.
size_t any_size(std::mt19937& random) {
  const unsigned kind = random() % 100;
  if (kind == 0) return (size_t{33} << 20) + random() % 1000;
  if (kind < 4) return (size_t{64} << 10) + random() % 1000000;
  if (kind < 20) return 1 + random() % 8;
  return 1 + random() % (kind < 80 ? 600 : 60000);
}

// What lives in the heap is told, with its room, and nothing else.
void check_random(hummock_heap_t* heap) {
  std::mt19937 random(support::run_seed());
  const Blocks before = walked(heap);
  Blocks mine;
  std::vector<void*> list;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 1500; ++i) {
      if (!list.empty() && random() % 5 < 2) {
        std::swap(list[random() % list.size()], list.back());
        mine.erase(list.back());
        hummock_heap_free(heap, list.back());
        list.pop_back();
      } else {
        const size_t size = any_size(random);
        void* block = size <= 8 ? hummock_heap_realloc(heap, hummock_heap_malloc(heap, 16), size)
                                : hummock_heap_malloc(heap, size);
        REQUIRE(block != nullptr);
        memset(block, 0xff, size < 64 ? size : 64);
        mine[block] = hummock_usable_size(block);
        list.push_back(block);
      }
    }
    Blocks seen = walked(heap);
    for (const auto& [block, size] : before) seen.erase(block);
    CHECK(seen == mine);
  }
  for (void* block : list) hummock_heap_free(heap, block);
}

}  // namespace

TEST_CASE("a walk tells of each live block, of heaps and of the process") {
  hummock_heap_t* heap = hummock_heap_create();
  check_random(heap);
  CHECK(walked(heap).empty());
  void* in_heap = hummock_heap_malloc(heap, 100);
  check_random(nullptr);
  CHECK(walked(nullptr).count(in_heap) == 0);
  hummock_heap_destroy(heap);
}

TEST_CASE("a walk ends when it is told to, and its visitor may allocate and free") {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(hummock_malloc(64));
  unsigned left = 10;
  const auto few = [](void* context, void*, size_t) {
    return --*static_cast<unsigned*>(context) != 0 ? 1 : 0;
  };
  CHECK(hummock_heap_walk(nullptr, few, &left) == 0);
  CHECK(left == 0);
  const auto busy = [](void*, void*, size_t size) {
    hummock_free(hummock_malloc(size < 100000 ? size : 100));
    return 1;
  };
  CHECK(hummock_heap_walk(nullptr, busy, nullptr) == 0);
  CHECK(hummock_heap_walk(nullptr, nullptr, nullptr) == EINVAL);
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("blocks that rest in other threads' caches, or wait to be handed over, are not told of") {
  std::vector<void*> blocks;
  for (int i = 0; i < 4000; ++i) blocks.push_back(hummock_malloc(48));
  std::thread([&] {
    for (size_t i = 0; i < blocks.size(); i += 2) hummock_free(blocks[i]);
    std::vector<void*> own;
    for (int i = 0; i < 500; ++i) own.push_back(hummock_malloc(80));
    for (void* block : own) hummock_free(block);
    const Blocks seen = walked(nullptr);
    size_t wrong = 0;
    for (size_t i = 0; i < blocks.size(); ++i) wrong += seen.count(blocks[i]) != i % 2;
    for (void* block : own) wrong += seen.count(block);
    CHECK(wrong == 0);
  }).join();
  for (size_t i = 1; i < blocks.size(); i += 2) hummock_free(blocks[i]);
}

TEST_CASE("the use of a block's slab") {
  int here = 0;
  CHECK(hummock_slab_utilisation(nullptr) == -1);
  CHECK(hummock_slab_utilisation(&here) == -1);
  void* large = hummock_malloc(100000);
  CHECK(hummock_slab_utilisation(large) == 100);
  CHECK(hummock_slab_utilisation(static_cast<char*>(large) + 16) == -1);
  hummock_free(large);
  std::vector<char*> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(static_cast<char*>(hummock_malloc(200)));
  CHECK(hummock_slab_utilisation(blocks[1000] + 16) == -1);
  CHECK(hummock_slab_utilisation(blocks[1000]) == 100);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 8 != 0) hummock_free(blocks[i]);
  }
  size_t sparse = 0;
  for (size_t i = 0; i < blocks.size(); i += 8) {
    const int percent = hummock_slab_utilisation(blocks[i]);
    CHECK(percent > 0);
    sparse += percent < 20;
  }
  CHECK(sparse > blocks.size() / 8 * 3 / 4);  // but for what rests in the thread's cache
  for (size_t i = 0; i < blocks.size(); i += 8) hummock_free(blocks[i]);
}

TEST_CASE("active defragmentation gives memory back") {
  std::mt19937 random(support::run_seed());
  std::vector<char*> blocks;
  for (int i = 0; i < 100000; ++i) {
    auto* block = static_cast<char*>(hummock_malloc(200));
    memcpy(block, &i, sizeof i);
    blocks.push_back(block);
  }
  std::vector<char*> kept;
  for (char* block : blocks) {
    if (random() % 16 == 0) {
      kept.push_back(block);
    } else {
      hummock_free(block);
    }
  }
  std::vector<int> contents;
  for (const char* block : kept) {
    contents.emplace_back();
    memcpy(&contents.back(), block, sizeof(int));
  }
  const size_t before = support::figures().committed;
  for (size_t from = 0; from < kept.size(); from += 4096) {
    const size_t to = std::min(kept.size(), from + 4096);
    std::vector<char*> old;
    for (size_t i = from; i < to; ++i) {
      if (hummock_slab_utilisation(kept[i]) >= 60) continue;
      old.push_back(kept[i]);
      kept[i] = static_cast<char*>(memcpy(hummock_malloc(200), kept[i], 200));
    }
    for (char* block : old) hummock_free(block);
  }
  hummock_trim(0);
  const size_t after = support::figures().committed;
  MESSAGE("committed " << before / 1024 << " KiB before, " << after / 1024 << " KiB after, live "
                       << kept.size() * 208 / 1024 << " KiB");
  CHECK(after < before / 3);
  for (size_t i = 0; i < kept.size(); ++i) {
    int content;
    memcpy(&content, kept[i], sizeof content);
    CHECK(content == contents[i]);
    hummock_free(kept[i]);
  }
}

TEST_CASE("names of heaps") {
  hummock_heap_t* heap = hummock_heap_create();
  CHECK(hummock_heap_set_name(nullptr, "a") == EINVAL);
  CHECK(hummock_heap_set_name(heap, "a name that is much too long\n") == 0);
  const auto json = [] {
    std::string text(hummock_stats_json(nullptr, 0) + 4096, '\0');
    text.resize(hummock_stats_json(text.data(), text.size()));
    return text;
  };
  CHECK(json().find("\"name\":\"a name that is much too\"") != std::string::npos);
  CHECK(hummock_heap_set_name(heap, "tab\t") == 0);
  CHECK(json().find("\"name\":\"tab?\"") != std::string::npos);
  hummock_heap_destroy(heap);
  CHECK(json().find("tab?") == std::string::npos);
}
