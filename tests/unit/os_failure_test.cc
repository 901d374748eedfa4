// The system refuses: each of its calls is made to fail, once at every point of a workload, and then all
// of them from that point on. What cannot be served is NULL with ENOMEM, nothing that exists is lost,
// and when the system gives memory again all is well.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <atomic>
#include <thread>
#include <vector>

#include "support/refusing.h"
#include "support/support.h"

namespace {

using namespace support::refusing;

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
    const size_t stride = std::max<size_t>(1, points / support::scaled(60, 8));
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
    for (size_t first = 0; first < support::scaled(20, 6); ++first) {
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
