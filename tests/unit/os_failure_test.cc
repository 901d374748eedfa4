// The system refuses: each of its calls is made to fail, once at every point of a workload, and then all
// of them from that point on. What cannot be served is NULL with ENOMEM, nothing that exists is lost,
// and when the system gives memory again all is well.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>
#include <vector>

#include "os/os.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = size_t{1} << 20;

enum Call : unsigned { kMap = 1, kUnmap = 2, kAdvise = 4, kRemap = 8, kAll = 15 };

const hummock::os::Calls real = hummock::os::calls;

// Which calls fail: those of `which`, from the `first`-th on, `count` of them; or one in `one_in`, by chance.
struct Plan {
  std::atomic<unsigned> which{0};
  std::atomic<size_t> seen{0};
  std::atomic<size_t> refused{0};
  size_t first = 0;
  size_t count = 0;
  size_t one_in = 0;
  uint64_t seed = 0;
} plan;

bool refuse(Call call) {
  if ((plan.which.load() & call) == 0) return false;
  const size_t turn = plan.seen.fetch_add(1);
  if (plan.one_in != 0) {
    if (!support::Random(plan.seed + turn).one_in(plan.one_in)) return false;
  } else if (turn < plan.first || turn - plan.first >= plan.count) {
    return false;
  }
  plan.refused.fetch_add(1);
  errno = ENOMEM;
  return true;
}

void* map(void* hint, size_t size, int protection, int flags) {
  return refuse(kMap) ? MAP_FAILED : real.map(hint, size, protection, flags);
}
int unmap(void* address, size_t size) {
  return refuse(kUnmap) ? -1 : real.unmap(address, size);
}
int advise(void* address, size_t size, int advice) {
  return refuse(kAdvise) ? -1 : real.advise(address, size, advice);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return refuse(kRemap) ? MAP_FAILED : real.remap(address, old_size, new_size, flags, target);
}

class Refusing {
 public:
  Refusing(unsigned which, size_t first, size_t count) {
    plan.first = first;
    plan.count = count;
    plan.seen = 0;
    plan.refused = 0;
    plan.which = which;
    hummock::os::calls = {map, unmap, advise, remap};
  }
  // By chance.
  Refusing(unsigned which, uint64_t seed, size_t one_in, bool) : Refusing(which, 0, 0) {
    plan.seed = seed;
    plan.one_in = one_in;
  }
  ~Refusing() {
    hummock::os::calls = real;
    plan.which = 0;
    plan.one_in = 0;
  }
  static size_t refused() { return plan.refused.load(); }
  static size_t seen() { return plan.seen.load(); }
};

struct Block {
  void* address = nullptr;
  size_t size = 0;
};

// Blocks that keep their contents whatever the system does.
class Holdings {
 public:
  explicit Holdings(uint64_t seed) : random_(seed) {}
  ~Holdings() {
    for (Block& block : blocks_) end(block);
  }

  size_t misses() const { return misses_; }
  size_t lost() const { return lost_; }
  size_t wrong_errors() const { return wrong_errors_; }

  void work(size_t steps) {
    for (size_t i = 0; i < steps; ++i) step();
  }

  void check_all() {
    for (const Block& block : blocks_) check(block);
  }

  void trim() { hummock_trim(0); }

 private:
  static constexpr size_t kSlots = 96;

  void step() {
    Block& block = blocks_[random_.below(kSlots)];
    if (block.address == nullptr) return begin(block);
    check(block);
    if (random_.one_in(3)) return resize(block);
    end(block);
  }

  size_t draw() {
    static constexpr size_t kMost[] = {200, 5000, 60 * kKiB, 1 * kMiB, 12 * kMiB, 50 * kMiB};
    return 1 + random_.below(kMost[random_.below(6)]);
  }

  void take(Block& block, void* address, size_t size) {
    if (address == nullptr) {
      ++misses_;
      wrong_errors_ += errno != ENOMEM;
      return;
    }
    block = {address, size};
    support::fill(address, size, size);
  }

  void begin(Block& block) {
    const size_t size = draw();
    errno = 0;
    switch (random_.below(4)) {
      case 0: {
        void* address = hummock_calloc(1, size);
        if (address != nullptr) {
          const size_t near = std::min<size_t>(size, 20000);
          lost_ += !support::all_zero(address, 0, near) || !support::all_zero(address, size - near, size);
        }
        return take(block, address, size);
      }
      case 1:
        return take(block, hummock_memalign(size_t{1} << random_.between(4, 22), size), size);
      default:
        return take(block, hummock_malloc(size), size);
    }
  }

  void resize(Block& block) {
    const size_t size = draw();
    errno = 0;
    void* moved = hummock_realloc(block.address, size);
    if (moved == nullptr) {
      ++misses_;
      wrong_errors_ += errno != ENOMEM;
      return check(block);
    }
    lost_ += !support::intact(moved, block.size, block.size, std::min(size, block.size));
    block = {moved, size};
    support::fill(moved, size, size);
  }

  void end(Block& block) {
    errno = 123;
    hummock_free(block.address);
    wrong_errors_ += errno != 123;
    block = {};
  }

  void check(const Block& block) {
    if (block.address != nullptr) lost_ += !support::intact(block.address, block.size, block.size);
  }

  support::Random random_;
  Block blocks_[kSlots];
  size_t misses_ = 0, lost_ = 0, wrong_errors_ = 0;
};

void check_usable() {
  for (size_t size : {size_t{10}, 10 * kKiB, 300 * kKiB, 20 * kMiB, 70 * kMiB}) {
    void* block = hummock_malloc(size);
    CHECK(block != nullptr);
    if (block != nullptr) support::fill(block, size, size);
    block = hummock_realloc(block, size * 2);
    CHECK(block != nullptr);
    if (block != nullptr) CHECK(support::intact(block, size, size));
    hummock_free(block);
  }
}

// One workload with the given calls refused. How many calls it made.
size_t run(unsigned which, size_t first, size_t count, size_t steps) {
  Holdings holdings(first * 131 + which);
  holdings.work(150);
  size_t seen = 0;
  {
    Refusing refusing(which, first, count);
    // A new thread starts with nothing of its own.
    std::thread([&] { holdings.work(steps); }).join();
    holdings.work(steps);
    holdings.trim();
    holdings.check_all();
    seen = Refusing::seen();
    if ((which & kMap) == 0) CHECK(holdings.misses() == 0);
  }
  holdings.check_all();
  const size_t misses = holdings.misses();
  holdings.work(150);
  holdings.check_all();
  CHECK(holdings.lost() == 0);
  CHECK(holdings.wrong_errors() == 0);
  CHECK(holdings.misses() == misses);
  return seen;
}

}  // namespace

TEST_CASE("each call fails once, at every point") {
  support::HangGuard guard(280);
  for (Call which : {kMap, kUnmap, kAdvise, kRemap}) {
    CAPTURE(static_cast<unsigned>(which));
    const size_t points = std::max<size_t>(run(which, SIZE_MAX, 0, 200), 1);
    const size_t stride = std::max<size_t>(1, points / support::scaled(120, 8));
    for (size_t first = 0; first < points; first += stride) {
      CAPTURE(first);
      run(which, first, 1, 200);
    }
  }
  check_usable();
}

TEST_CASE("from some point on every call of a kind fails") {
  support::HangGuard guard(280);
  for (unsigned which :
       {kMap + 0, kUnmap + 0, kAdvise + 0, kRemap + 0, kMap | kRemap, kAdvise | kUnmap, kAll + 0}) {
    for (size_t first = 0; first < support::scaled(40, 6); ++first) {
      CAPTURE(which);
      CAPTURE(first);
      run(which, first, SIZE_MAX, 200);
    }
  }
  check_usable();
}

namespace {

struct Losses {
  std::atomic<size_t> lost{0}, wrong{0};
};

// Each thread of the crew has holdings of its own.
void run_crew(size_t threads, uint64_t seed, size_t operations, bool trims, Losses* losses) {
  std::vector<std::thread> crew;
  for (size_t t = 0; t < threads; ++t) {
    crew.emplace_back([=] {
      Holdings holdings(seed + t);
      holdings.work(operations);
      if (trims) holdings.trim();
      holdings.check_all();
      losses->lost += holdings.lost();
      losses->wrong += holdings.wrong_errors();
    });
  }
  for (std::thread& thread : crew) thread.join();
}

}  // namespace

TEST_CASE("calls fail by chance, one thread or many") {
  support::HangGuard guard(280);
  const uint64_t seed = support::run_seed();
  for (size_t round = 0; round < support::scaled(30, 6); ++round) {
    CAPTURE(seed);
    CAPTURE(round);
    Losses losses;
    {
      support::Random random(seed + round);
      const unsigned which = round % 3 == 0 ? kAll + 0 : 1 + static_cast<unsigned>(random.below(15));
      Refusing refusing(which, seed + round * 1000003, size_t{1} << random.below(6), true);
      run_crew(1 + round % 4, seed + round * 16, support::scaled(400, 100), true, &losses);
    }
    CHECK(losses.lost == 0);
    CHECK(losses.wrong == 0);
  }
  check_usable();
}

TEST_CASE("mappings that the system does not take back serve the next blocks") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  hummock_trim(0);
  std::vector<void*> blocks(24);
  for (void*& block : blocks) {
    REQUIRE((block = hummock_malloc(40 * kMiB)) != nullptr);
    support::fill(block, 7, 40 * kMiB);
  }
  {
    Refusing refusing(kUnmap, 0, SIZE_MAX);
    for (void* block : blocks) hummock_free(block);
    hummock_trim(0);
  }
  Refusing refusing(kMap, 0, SIZE_MAX);
  for (void*& block : blocks) {
    block = hummock_calloc(1, 40 * kMiB);
    REQUIRE(block != nullptr);
    CHECK(support::all_zero(block, 0, 40 * kMiB));
  }
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("a thread gets its record where nothing can be mapped, if there is memory that was freed") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(hummock_malloc(300 * kKiB));
  for (void* block : blocks) hummock_free(block);
  std::atomic<size_t> served{0}, running{0};
  constexpr size_t kThreads = 100;  // more than the records of one chunk
  std::atomic<bool> go{false};
  std::vector<std::thread> crew;
  for (size_t t = 0; t < kThreads; ++t) {
    crew.emplace_back([&] {
      ++running;
      while (!go) std::this_thread::yield();
      void* block = hummock_malloc(100);
      served += block != nullptr;
      hummock_free(block);
      --running;
      while (running != 0) std::this_thread::yield();  // its record is nobody else's meanwhile
    });
  }
  while (running != kThreads) std::this_thread::yield();
  {
    Refusing refusing(kMap, 0, SIZE_MAX);
    go = true;
    for (std::thread& thread : crew) thread.join();
  }
  CHECK(served == kThreads);
}

TEST_CASE("without new memory, what was freed can be had again") {
  support::HangGuard guard(60);
  constexpr size_t kCount = 3000;
  std::vector<void*> blocks(kCount);
  for (void*& block : blocks) block = hummock_malloc(1000);
  Refusing refusing(kMap, 0, SIZE_MAX);
  size_t more = 0;
  std::vector<void*> extra;
  while (void* block = hummock_malloc(1000)) {
    extra.push_back(block);
    REQUIRE(++more < 10000000);
  }
  CHECK(errno == ENOMEM);
  for (void* block : blocks) hummock_free(block);
  size_t again = 0;
  for (void*& block : blocks) again += (block = hummock_malloc(1000)) != nullptr;
  if (!support::checked()) CHECK(again == kCount);
  for (void* block : blocks) hummock_free(block);
  for (void* block : extra) hummock_free(block);
}

TEST_CASE("heaps without memory") {
  support::HangGuard guard(60);
  for (size_t first = 0; first < 6; ++first) {
    hummock_heap_t* heap = nullptr;
    std::vector<void*> blocks;
    {
      Refusing refusing(kMap, first, SIZE_MAX);
      errno = 0;
      heap = hummock_heap_create();
      if (heap == nullptr) CHECK(errno == ENOMEM);
      for (size_t i = 0; heap != nullptr && i < 400000; ++i) {
        void* block = hummock_heap_malloc(heap, 3000);
        if (block == nullptr) break;
        support::fill(block, i, 3000);
        blocks.push_back(block);
      }
    }
    for (size_t i = 0; i < blocks.size(); ++i) REQUIRE(support::intact(blocks[i], i, 3000));
    hummock_heap_destroy(heap);
  }
  hummock_heap_t* heap = hummock_heap_create();
  REQUIRE(heap != nullptr);
  CHECK(hummock_heap_malloc(heap, 3000) != nullptr);
  hummock_heap_destroy(heap);
}

TEST_CASE("memory that the system would not take back is not lost for good") {
  support::HangGuard guard(60);
  if (support::checked()) return;
  const size_t before = support::figures().live;
  {
    Refusing refusing(kAdvise | kUnmap, 0, SIZE_MAX);
    for (int round = 0; round < 4; ++round) {
      void* blocks[8];
      for (void*& block : blocks) block = hummock_malloc(24 * kMiB);
      for (void* block : blocks) hummock_free(block);
      hummock_trim(0);
    }
  }
  check_usable();
  hummock_trim(0);
  CHECK(support::figures().live <= before + kMiB);
  CHECK(support::figures().mapped <= size_t{2} << 30);
}

TEST_CASE("threads under failing calls") {
  support::HangGuard guard(120);
  for (unsigned which : {kMap + 0, kAll + 0}) {
    Losses losses;
    {
      Refusing refusing(which, support::scaled(20, 5), SIZE_MAX);
      run_crew(6, support::run_seed(), support::scaled(3000, 200), false, &losses);
    }
    CHECK(losses.lost == 0);
    CHECK(losses.wrong == 0);
  }
  check_usable();
}
