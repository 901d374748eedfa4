// The profile: chances and weights, and the tables.
#include <doctest/doctest.h>
#include <string.h>

#include <cmath>
#include <memory>
#include <vector>

#include "hummock/hummock.h"
#include "modes/sample_chance.h"
#include "modes/sample_table.h"
#include "modes/sampling.h"

namespace sampling = hummock::modes::sampling;

namespace {

// The tables of one test, in place of the process's.
struct OwnTable {
  OwnTable() : before(sampling::current_table()), table(std::make_unique<hummock_profile_t>()) {
    sampling::set_table(table.get(), hummock::os::process_id());
  }
  ~OwnTable() { sampling::set_table(before, hummock::os::process_id()); }
  hummock_profile_t* before;
  std::unique_ptr<hummock_profile_t> table;
};

void* at(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

void add(uintptr_t block, uint64_t bytes, std::vector<void*> frames) {
  sampling::add_sample({at(block), bytes, bytes, HUMMOCK_PROFILE_BLOCK, 7}, frames.data(),
                       static_cast<unsigned>(frames.size()));
}

bool end(uintptr_t block) {
  hummock_profile_sample_t sample;
  if (!sampling::take_sample(at(block), &sample)) return false;
  sampling::end_sample(sample);
  return true;
}

// The stack of these frames, whose first one is no other's.
const hummock_profile_stack_t& stack_of(const hummock_profile_t& table, uintptr_t first) {
  for (uint32_t i = 1; i < table.head.stacks; ++i)
    if (table.frame[table.stack[i].first] == first) return table.stack[i];
  return table.stack[0];
}

uint64_t at_peak(const hummock_profile_t& table, const hummock_profile_stack_t& stack) {
  return table.head.rising != 0 || stack.mark != table.head.mark ? stack.live_bytes : stack.peak_bytes;
}

}  // namespace

TEST_CASE("counts are of the exponential distribution") {
  for (const uint64_t mean : {100u, 4096u, 524288u}) {
    uint64_t random = 88172645463325252u;
    constexpr unsigned kDraws = 200000;
    double sum = 0;
    unsigned above = 0;
    for (unsigned i = 0; i < kDraws; ++i) {
      const uint64_t count = sampling::next_count(&random, mean);
      REQUIRE(count >= 1);
      sum += static_cast<double>(count) - 0.5;  // as it is rounded up
      above += count > mean;
    }
    CHECK(sum / kDraws == doctest::Approx(static_cast<double>(mean)).epsilon(0.02));
    CHECK(above / double{kDraws} == doctest::Approx(std::exp(-1)).epsilon(0.03));
  }
  uint64_t random = 1;
  CHECK(sampling::next_count(&random, 1) == 0);
}

TEST_CASE("weights are one by the chance") {
  for (const uint64_t mean : {64u, 4096u, 524288u}) {
    for (const size_t size : {size_t{1}, size_t{16}, size_t{1000}, size_t{524288}, size_t{100} << 20}) {
      const double chance = -std::expm1(-static_cast<double>(size) / static_cast<double>(mean));
      const sampling::Weight weight = sampling::weight_of(size, mean);
      CHECK(std::fabs(static_cast<double>(weight.bytes) - static_cast<double>(size) / chance) <=
            0.5 + 1e-9 * static_cast<double>(size) / chance);
      CHECK(static_cast<double>(weight.blocks) ==
            doctest::Approx(HUMMOCK_PROFILE_BLOCK / chance).epsilon(1e-4));
    }
  }
  CHECK(sampling::weight_of(77, 1).bytes == 77);
  CHECK(sampling::weight_of(77, 1).blocks == HUMMOCK_PROFILE_BLOCK);
}

TEST_CASE("a stack's sums follow its samples") {
  OwnTable own;
  const hummock_profile_t& table = *own.table;
  add(0x1000, 100, {at(0x111), at(0x222)});
  add(0x2000, 50, {at(0x111), at(0x222)});
  add(0x3000, 7, {at(0x333)});
  CHECK(table.head.stacks == 3);
  CHECK(stack_of(table, 0x111).live_bytes == 150);
  CHECK(stack_of(table, 0x333).live_bytes == 7);
  CHECK(table.head.live_bytes == 157);
  CHECK(end(0x1000));
  CHECK_FALSE(end(0x1000));
  CHECK_FALSE(end(0x4000));
  CHECK(stack_of(table, 0x111).live_bytes == 50);
  CHECK(stack_of(table, 0x111).total_bytes == 150);
  CHECK(stack_of(table, 0x111).samples == 2);
  CHECK(table.head.live_bytes == 57);
}

TEST_CASE("a sample may be put back") {
  OwnTable own;
  add(0x1000, 100, {at(0x111)});
  hummock_profile_sample_t sample;
  REQUIRE(sampling::take_sample(at(0x1000), &sample));
  CHECK(own.table->head.live_bytes == 100);
  sampling::put_back(sample);
  CHECK(own.table->head.live_bytes == 100);
  CHECK(end(0x1000));
  CHECK(own.table->head.live_bytes == 0);
}

// Compared with a model that copies all sums at each new peak.
TEST_CASE("what stacks held at the peak is exact") {
  OwnTable own;
  const hummock_profile_t& table = *own.table;
  constexpr unsigned kStacks = 12;
  uint64_t live[kStacks + 1] = {}, peak[kStacks + 1] = {}, total = 0, most = 0;
  std::vector<std::pair<uintptr_t, unsigned>> blocks;
  uint64_t random = 12345;
  for (unsigned step = 0; step < 20000; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const auto draw = static_cast<unsigned>(random >> 40);
    const bool grow = (step / 500) % 2 == 0 ? draw % 10 < 7 : draw % 10 < 3;
    if (grow || blocks.empty()) {
      const unsigned stack = 1 + draw % kStacks;
      const uintptr_t block = 0x10000 + step * 64;
      add(block, block % 1000 + 1, {at(stack)});
      live[stack] += block % 1000 + 1;
      total += block % 1000 + 1;
      blocks.emplace_back(block, stack);
      if (total > most) {
        most = total;
        memcpy(peak, live, sizeof peak);
      }
    } else {
      std::swap(blocks[draw % blocks.size()], blocks.back());
      const auto [block, stack] = blocks.back();
      blocks.pop_back();
      REQUIRE(end(block));
      live[stack] -= block % 1000 + 1;
      total -= block % 1000 + 1;
    }
    REQUIRE(table.head.live_bytes == total);
    if (step % 100 != 0) continue;
    REQUIRE(table.head.peak_bytes == most);
    for (unsigned i = 1; i <= kStacks; ++i) {
      const hummock_profile_stack_t& stack = stack_of(table, i);
      if (stack.samples == 0) continue;
      REQUIRE(stack.live_bytes == live[i]);
      REQUIRE(at_peak(table, stack) == peak[i]);
    }
  }
}

TEST_CASE("full tables are told, and hold") {
  OwnTable own;
  const hummock_profile_t& table = *own.table;
  for (uintptr_t i = 0; i < 40000; ++i) add(0x100000 + 16 * i, 1, {at(0x1000 + i), at(0x77)});
  CHECK(table.head.stacks <= HUMMOCK_PROFILE_STACKS);
  CHECK(table.head.stacks > HUMMOCK_PROFILE_STACKS * 9 / 10);
  CHECK(table.head.stacks_dropped >= 40000 - HUMMOCK_PROFILE_STACKS);
  for (uintptr_t i = 40000; i < 400000; ++i) add(0x100000 + 16 * i, 1, {at(0x1000)});
  CHECK(table.head.samples_dropped > 200000);
  CHECK(table.head.samples == 400000);
  CHECK(table.head.live_bytes + table.head.samples_dropped == 400000);
  uint64_t ended = 0;
  for (uintptr_t i = 0; i < 400000; ++i) ended += end(0x100000 + 16 * i);
  CHECK(ended + table.head.samples_dropped == 400000);
  CHECK(table.head.live_bytes == 0);
}

// Who has the memory open may write anything there at any time.
TEST_CASE("hostile tables are no danger") {
  OwnTable own;
  for (uintptr_t i = 0; i < 100; ++i) add(0x1000 + 64 * i, 10, {at(0x100 + i), at(5), at(6)});
  uint64_t random = 99;
  auto* words = reinterpret_cast<uint64_t*>(own.table.get());
  for (unsigned round = 0; round < 200; ++round) {
    for (unsigned i = 0; i < 2000; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      words[(random >> 20) % (sizeof(hummock_profile_t) / 8)] = random * 0x9e3779b97f4a7c15u;
    }
    for (unsigned i = 0; i < HUMMOCK_PROFILE_INDEX; ++i)
      own.table->index[i] = static_cast<uint32_t>(random + i * 7);
    for (unsigned i = 0; i < 256; ++i) {
      own.table->stack[i].first = ~0u - i;
      own.table->stack[i].depth = 60 + i;
    }
    for (uintptr_t i = 0; i < 100; ++i) {
      end(0x1000 + 64 * i);
      add(0x1000 + 64 * i, 10, {at(0x100 + i), at(5), at(6)});
    }
  }
  memset(own.table.get(), 0xff, sizeof(hummock_profile_t));
  add(0x1000, 10, {at(0x100)});
  end(0x1000);
  CHECK(true);
}
