// Checked mode: what it says of blocks that are freed twice, or are none.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <pthread.h>
#include <stdlib.h>

#include <sstream>
#include <string>

#include "modes/checked.h"
#include "support/capture.h"

// Of this very program, so that the first block finds it in effect.
const char* hummock_conf = "checked:on,stacks:16";

namespace checked = hummock::modes::checked;
using support::contains;
using support::Ending;
using support::ending_of;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Pages of their own, so that a return address tells which of the two made the call.
constexpr uintptr_t kPlace = 4096;
__attribute__((noinline, aligned(kPlace), section("here"))) char* allocate_here(size_t size) {
  char* block = static_cast<char*>(hummock_malloc(size));
  __asm__ volatile("" : : "r"(block) : "memory");  // no tail call
  return block;
}
__attribute__((noinline, aligned(kPlace), section("here"))) void free_here(void* block) {
  hummock_free(block);
  __asm__ volatile("" : : : "memory");
}

__attribute__((noinline, aligned(kPlace), section("here"))) void free_again_here(void* block) {
  hummock_free(block);
  __asm__ volatile("" : : : "memory");
}

template <class Function>
bool has_frame_in(const std::string& frames, Function* function) {
  const auto start = reinterpret_cast<uintptr_t>(function);
  for (size_t at = frames.find("[0x"); at != std::string::npos; at = frames.find("[0x", at + 1)) {
    if ((strtoull(frames.c_str() + at + 1, nullptr, 16) & ~(kPlace - 1)) == start) return true;
  }
  return false;
}

char* block_of(size_t size) {
  char* block = static_cast<char*>(hummock_malloc(size));
  REQUIRE(block != nullptr);
  return block;
}

}  // namespace

TEST_CASE("a double free is reported with all three stacks") {
  const Ending ending = ending_of([] {
    char* block = allocate_here(48);
    free_here(block);
    free_again_here(block);
  });
  INFO(ending.said);
  CHECK(ending.aborted);
  CHECK(contains(ending.said, "double free: the block of 48 bytes is free already"));
  const size_t allocated = ending.said.find("  allocated by thread ");
  const size_t freed = ending.said.find("  freed by thread ");
  REQUIRE(allocated != std::string::npos);
  REQUIRE(freed != std::string::npos);
  const size_t now = ending.said.find("  this call by thread ");
  REQUIRE(now != std::string::npos);
  REQUIRE(allocated < freed);
  REQUIRE(freed < now);
  const std::string first = ending.said.substr(allocated, freed - allocated);
  const std::string second = ending.said.substr(freed, now - freed);
  const std::string third = ending.said.substr(now);
  CHECK(has_frame_in(third, free_again_here));
  CHECK_FALSE(has_frame_in(third, free_here));
  CHECK_FALSE(has_frame_in(second, free_again_here));
  for (const char* name : {"allocate_here", "free_here", "free_again_here"})
    CHECK(contains(ending.said, name));
  CHECK(has_frame_in(first, allocate_here));
  CHECK_FALSE(has_frame_in(first, free_here));
  CHECK(has_frame_in(second, free_here));
  CHECK_FALSE(has_frame_in(second, allocate_here));
}

TEST_CASE("each line of a report names the library and the process") {
  for (const Ending& ending : {ending_of([] {
                                 char* block = block_of(48);
                                 hummock_free(block);
                                 hummock_free(block);
                               }),
                               ending_of([] {
                                 block_of(100)[100] = 1;
                                 checked::check_all();
                               }),
                               ending_of([] {
                                 int local = 0;
                                 hummock_free(&local);
                               })}) {
    CHECK(ending.aborted);
    std::istringstream lines(ending.said);
    std::string first, line;
    std::getline(lines, first);
    const size_t colon = first.find(": ", sizeof("hummock: ") - 1);
    REQUIRE(colon != std::string::npos);
    const std::string start = first.substr(0, colon + 2);
    CHECK(start.find_first_not_of("0123456789", sizeof("hummock: ") - 1) == colon);
    CHECK(colon > sizeof("hummock: ") - 1);
    while (std::getline(lines, line)) {
      INFO(line);
      CHECK(line.compare(0, start.size(), start) == 0);
    }
  }
}

namespace {

struct Race {
  char* block;
  int ready = 0;
};

void* free_with_other(void* argument) {
  auto* race = static_cast<Race*>(argument);
  __atomic_fetch_add(&race->ready, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&race->ready, __ATOMIC_ACQUIRE) != 2) {
  }
  hummock_free(race->block);
  return nullptr;
}

}  // namespace

TEST_CASE("of two threads that free one block at once, one is told") {
  for (const size_t size : {size_t{16}, size_t{1000}, size_t{100000}, 3 * kMiB}) {
    for (const bool by_realloc : {false, true}) {
      for (int trial = 0; trial < 25; ++trial) {
        const Ending ending = ending_of([size, by_realloc] {
          Race race = {block_of(size)};
          pthread_t other;
          pthread_create(&other, nullptr, free_with_other, &race);
          __atomic_fetch_add(&race.ready, 1, __ATOMIC_ACQ_REL);
          while (__atomic_load_n(&race.ready, __ATOMIC_ACQUIRE) != 2) {
          }
          if (by_realloc) {
            hummock_realloc(race.block, size + 1);
          } else {
            hummock_free(race.block);
          }
          pthread_join(other, nullptr);
        });
        INFO(size << " " << by_realloc << " " << ending.said);
        REQUIRE(ending.aborted);
        const bool told = contains(ending.said, "double free") || contains(ending.said, "was freed");
        REQUIRE(told);
        REQUIRE(contains(ending.said, "  freed by thread "));
      }
    }
  }
}

TEST_CASE("a block that was freed cannot be resized, measured or freed with a size") {
  const auto with_freed = [](auto act) {
    return ending_of([act] {
      char* block = block_of(64);
      hummock_free(block);
      act(block);
    });
  };
  for (const Ending& ending : {with_freed([](char* block) { hummock_realloc(block, 100); }),
                               with_freed([](char* block) { hummock_usable_size(block); })}) {
    CHECK(ending.aborted);
    CHECK(contains(ending.said, "the block of 64 bytes was freed"));
    CHECK(contains(ending.said, "  freed by thread "));
  }
  const Ending sized = with_freed([](char* block) { hummock_free_sized(block, 64); });
  CHECK(sized.aborted);
  CHECK(contains(sized.said, "double free"));
}

TEST_CASE("what is no block is told apart") {
  const Ending inner = ending_of([] { hummock_free(block_of(100) + 8); });
  CHECK(inner.aborted);
  CHECK(contains(inner.said, "points 8 bytes into a block of 100 bytes"));
  CHECK(ending_of([] {
          int local = 0;
          hummock_free(&local);
        }).aborted);
  const Ending size = ending_of([] { hummock_free_sized(block_of(100), 101); });
  CHECK(size.aborted);
  CHECK(contains(size.said, "allocated with 100 bytes, not 101"));
  const Ending alignment =
      ending_of([] { hummock_free_aligned_sized(hummock_aligned_alloc(64, 100), 128, 100); });
  CHECK(alignment.aborted);
  CHECK(contains(alignment.said, "allocated with alignment 64, not 128"));
}

TEST_CASE("a block that is given to a heap other than its own is reported") {
  hummock_heap_t* one = hummock_heap_create();
  hummock_heap_t* other = hummock_heap_create();
  const auto of_other = [](const Ending& ending) {
    INFO(ending.said);
    CHECK(ending.aborted);
    CHECK(contains(ending.said, "the block is of another heap"));
    CHECK(contains(ending.said, "  allocated by thread "));
  };
  for (const size_t size : {size_t{16}, size_t{1000}, size_t{100000}, 3 * kMiB}) {
    of_other(ending_of([=] { hummock_heap_free(other, hummock_heap_malloc(one, size)); }));
    of_other(ending_of([=] { hummock_heap_realloc(other, hummock_heap_malloc(one, size), 2 * size); }));
    of_other(ending_of([=] { hummock_heap_free(other, hummock_malloc(size)); }));
    CHECK_FALSE(ending_of([=] {
                  hummock_heap_free(one, hummock_heap_malloc(one, size));
                  hummock_free(hummock_heap_realloc(other, hummock_heap_malloc(other, size), 2 * size));
                }).aborted);
  }
  hummock_heap_destroy(one);
  hummock_heap_destroy(other);
}
