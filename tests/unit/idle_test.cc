// Slabs of a thread that does not look at what others free there: pages without a block in use go back to the
// system, all other blocks stay as they are, and the thread gets the memory again when it asks.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "os/os.h"
#include "pages/regret.h"
#include "slab/slab.h"
#include "support/support.h"

namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kBytes = size_t{1} << 20;

struct Block {
  char* address;
  size_t size;
  uint64_t tag;
};

Block make(size_t size, uint64_t tag) {
  const Block block = {static_cast<char*>(hummock_malloc(size)), size, tag};
  REQUIRE(block.address != nullptr);
  support::fill(block.address, tag, size);
  return block;
}

void check(const Block& block) {
  CHECK(support::intact(block.address, block.tag, block.size));
}

// Its own thread does what it is told, and waits.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    tell([] {}, true);
    thread_.join();
  }
  template <class Act>
  void does(Act act) {
    tell(act, false);
  }

 private:
  template <class Act>
  void tell(Act act, bool last) {
    std::unique_lock<std::mutex> lock(mutex_);
    act_ = act;
    last_ = last;
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !asked_; });
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    do {
      changed_.wait(lock, [this] { return asked_; });
      act_();
      asked_ = false;
      changed_.notify_all();
    } while (!last_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> act_;
  bool asked_ = false, last_ = false;
  std::thread thread_;
};

using Pages = std::set<uintptr_t>;

void add_pages(const Block& block, Pages* pages) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(block.address);
  for (uintptr_t page = from & ~(kPage - 1); page < from + block.size; page += kPage) pages->insert(page);
}

size_t resident(const Pages& pages) {
  size_t count = 0;
  for (const uintptr_t page : pages) {
    unsigned char state = 0;
    if (mincore(reinterpret_cast<void*>(page), kPage, &state) == 0) count += state & 1;
  }
  return count;
}

// Which blocks stay, of `count`.
struct Pattern {
  const char* name;
  bool (*stays)(size_t i, size_t count);
};
const Pattern kPatterns[] = {
    {"the first 1/16", [](size_t i, size_t count) { return i < count / 16; }},
    {"the last 1/16", [](size_t i, size_t count) { return i >= count - count / 16; }},
    {"the middle", [](size_t i, size_t count) { return i >= count / 2 && i < count / 2 + count / 16; }},
    {"one of a hundred", [](size_t i, size_t) { return i % 100 == 50; }},
    {"none", [](size_t, size_t) { return false; }},
};

// What the thread has in its bin, of memory never handed out, and what its first slot's first page may add.
constexpr size_t kAtHand = 4;

// Slabs of several slots are given back by longer parts: so much more may stay before and behind each block,
// and the block that the thread has at hand.
size_t pages_by_parts(size_t size, size_t kept) {
  const unsigned slots = hummock::slab::kTable.row[hummock::slab::class_of(size)].slots;
  return size <= 8192 ? 0 : kept * 2 * (slots - 1) + 2 * (size / kPage + 1);
}

void try_pattern(size_t size, const Pattern& pattern) {
  CAPTURE(size);
  CAPTURE(pattern.name);
  const size_t count = kBytes / size;
  std::vector<Block> blocks, kept, later;
  Pages all, needed;
  Worker worker;
  worker.does([&] {
    for (size_t i = 0; i < count; ++i) blocks.push_back(make(size, i));
  });
  for (size_t i = 0; i < count; ++i) {
    add_pages(blocks[i], &all);
    if (pattern.stays(i, count)) {
      kept.push_back(blocks[i]);
      add_pages(blocks[i], &needed);
    } else {
      hummock_free(blocks[i].address);
    }
  }
  hummock_trim(0);
  if (!HUMMOCK_TEST_EMULATED && hummock::os::page_size() == kPage) {
    CHECK(resident(all) <= needed.size() + kAtHand + pages_by_parts(size, kept.size()));
  }
  for (const Block& block : kept) check(block);
  worker.does([&] {
    for (size_t i = 0; i < 2 * count; ++i) later.push_back(make(size, count + i));
  });
  for (const Block& block : kept) check(block);
  for (const Block& block : later) check(block);
  for (const Block& block : kept) hummock_free(block.address);
  worker.does([&] {
    for (const Block& block : later) hummock_free(block.address);
  });
}

const hummock::os::Calls real = hummock::os::calls;
std::atomic<size_t> refused;

int refuse_advice(void*, size_t, int) {
  ++refused;
  errno = ENOMEM;
  return -1;
}

}  // namespace

TEST_CASE("pages that hold nothing in use go back, whatever the blocks' size and which of them stay") {
  for (const size_t size : {16, 48, 100, 500, 1024, 3000, 8192, 11000, 22000, 57000, 65536}) {
    for (const Pattern& pattern : kPatterns) {
      try_pattern(size, pattern);
      hummock_trim(0);  // or the next one begins with what this thread keeps of it
    }
  }
}

TEST_CASE("in turns: some blocks freed, pages given back, more blocks freed") {
  for (const size_t size : {64, 400, 2048}) {
    CAPTURE(size);
    const size_t count = kBytes / size;
    std::vector<Block> blocks;
    Pages all, needed;
    Worker worker;
    worker.does([&] {
      for (size_t i = 0; i < count; ++i) blocks.push_back(make(size, i));
    });
    for (const Block& block : blocks) add_pages(block, &all);
    const auto stays = [](size_t i) { return i % 200 == 100; };
    for (size_t part = 0; part < 8; ++part) {
      for (size_t i = part; i < count; i += 8) {
        if (!stays(i)) hummock_free(blocks[i].address);
      }
      hummock_trim(0);
    }
    for (size_t i = 0; i < count; ++i) {
      if (stays(i)) add_pages(blocks[i], &needed);
    }
    CHECK((HUMMOCK_TEST_EMULATED || resident(all) <= needed.size() + kAtHand));
    for (size_t i = 0; i < count; ++i) {
      if (!stays(i)) continue;
      check(blocks[i]);
      hummock_free(blocks[i].address);
    }
    hummock_trim(0);
    CHECK((HUMMOCK_TEST_EMULATED || resident(all) <= kAtHand));
  }
}

TEST_CASE("a trim looks again although little has come back since the last one") {
  constexpr size_t kSize = 100, kCount = kBytes / kSize;
  std::vector<Block> blocks;
  Pages all, needed;
  Worker worker;
  worker.does([&] {
    for (size_t i = 0; i < kCount; ++i) blocks.push_back(make(kSize, i));
  });
  for (const Block& block : blocks) add_pages(block, &all);
  // Two blocks of each page stay at first; then those of every other two pages go.
  const auto late = [](size_t i) { return i % 20 == 10; };
  for (size_t i = 0; i < kCount; ++i) {
    if (!late(i)) hummock_free(blocks[i].address);
  }
  hummock_trim(0);
  for (size_t i = 0; i < kCount; ++i) {
    if (late(i) && i / 80 % 2 == 0) {
      hummock_free(blocks[i].address);
    } else if (late(i)) {
      add_pages(blocks[i], &needed);
    }
  }
  hummock_trim(0);
  CHECK((HUMMOCK_TEST_EMULATED || hummock::os::page_size() != kPage ||
         resident(all) <= needed.size() + kAtHand));
  for (size_t i = 0; i < kCount; ++i) {
    if (!late(i) || i / 80 % 2 == 0) continue;
    check(blocks[i]);
    hummock_free(blocks[i].address);
  }
}

TEST_CASE("what the system refuses to take is used again") {
  std::vector<Block> blocks, later;
  Worker worker;
  worker.does([&] {
    for (size_t i = 0; i < 2000; ++i) blocks.push_back(make(500, i));
  });
  for (size_t i = 100; i < 2000; ++i) hummock_free(blocks[i].address);
  hummock::os::calls.advise = refuse_advice;
  hummock_trim(0);
  hummock::os::calls = real;
  CHECK(refused.load() > 0);
  worker.does([&] {
    for (size_t i = 0; i < 4000; ++i) later.push_back(make(500, 2000 + i));
  });
  for (size_t i = 0; i < 100; ++i) check(blocks[i]);
  for (const Block& block : later) check(block);
  for (size_t i = 0; i < 100; ++i) hummock_free(blocks[i].address);
  for (const Block& block : later) hummock_free(block.address);
}

TEST_CASE("while all threads allocate, free each other's blocks, and one gives back without pause") {
  const support::HangGuard guard(250);
  constexpr unsigned kThreads = 4;
  constexpr size_t kSlots = 3000;
  static std::atomic<Block*> slots[kSlots];
  std::atomic<size_t> wrong{0};
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      support::Random random(support::run_seed() + t);
      for (size_t i = support::scaled(400000); i != 0; --i) {
        const size_t size = 16 + random.below(random.one_in(8) ? random.one_in(4) ? 60000 : 8000 : 700);
        Block* fresh = nullptr;
        if (!random.one_in(3)) {
          fresh = static_cast<Block*>(hummock_malloc(sizeof(Block) + size));
          *fresh = {reinterpret_cast<char*>(fresh + 1), size, random.next()};
          support::fill(fresh->address, fresh->tag, size);
        }
        Block* old = slots[random.below(kSlots)].exchange(fresh);
        if (old == nullptr) continue;
        wrong += !support::intact(old->address, old->tag, old->size);
        hummock_free(old);
      }
    });
  }
  std::thread giver([&] {
    while (!ended) hummock_trim(0);
  });
  for (std::thread& thread : threads) thread.join();
  ended = true;
  giver.join();
  for (auto& slot : slots) hummock_free(slot.exchange(nullptr));
  CHECK(wrong.load() == 0);
}

namespace {

ptrdiff_t returned() {
  return hummock::relaxed(hummock::slab::returned_bytes.value);
}

// Twice the bound on what may wait, 6 MiB and more if purged pages were needed again, and what threads free
// between two looks.
ptrdiff_t most_returned() {
  return static_cast<ptrdiff_t>(2 * (6 * kBytes + hummock::pages::slab_regret.value.bytes()) + 12 * kBytes);
}

// 96 MiB, of a thread that waits.
std::vector<void*> blocks_of(Worker* owner) {
  std::vector<void*> blocks(96 * kBytes / 1000);
  owner->does([&] {
    for (void*& block : blocks) {
      block = hummock_malloc(1000);
      memset(block, 1, 1000);
    }
  });
  return blocks;
}

// One block of each slab stays.
void give(const std::vector<void*>& blocks, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (i % 64 != 0) hummock_free(blocks[i]);
  }
}

}  // namespace

namespace {

void free_at_once(bool shuffled) {
  constexpr size_t kThreads = 8;
  hummock::pages::slab_regret.value.fade(64);  // of earlier cases
  const ptrdiff_t before = returned();
  Worker owner;
  std::vector<void*> blocks = blocks_of(&owner);
  if (shuffled) std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));
  const size_t part = blocks.size() / kThreads;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { give(blocks, t * part, part); });
  for (std::thread& thread : threads) thread.join();
  MESSAGE("what waits: " << (returned() - before) / 1024 << " KiB");
  CHECK(returned() - before <= most_returned());
}

}  // namespace

TEST_CASE("threads that free at the same time do not outrun what goes back") {
  if (hummock::os::page_size() != kPage) return;
  free_at_once(false);
}

TEST_CASE("blocks that come back in any order leave no more") {
  if (hummock::os::page_size() != kPage) return;
  free_at_once(true);
}

TEST_CASE("threads that free little and end let it go back, too") {
  if (hummock::os::page_size() != kPage) return;
  const ptrdiff_t before = returned();
  Worker owner;
  const std::vector<void*> blocks = blocks_of(&owner);
  constexpr size_t kEach = 30;
  for (size_t i = 0; i + kEach <= blocks.size(); i += kEach)
    std::thread([&] { give(blocks, i, kEach); }).join();
  CHECK(returned() - before <= most_returned());
}
