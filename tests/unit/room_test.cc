// A process whose address space is limited: what free regions have serves very large blocks, and comes back.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iterator>

#include "address_space.h"
#include "base/options.h"
#include "pages/region.h"
#include "support/figures.h"

namespace {

using namespace hummock::pages;
using hummock::options::HugePages;

constexpr size_t kRoom = 256 * kMiB;
constexpr size_t kHuge = 40 * kMiB;
constexpr size_t kSize = 256 * kKiB;  // of what the program maps itself

bool runs_here() {
  return kHasAddresses && !support::checked() && hummock::options::values.huge_pages < HugePages::pool_2m;
}

size_t mapped() {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%zu", &pages) != 1) abort();
  fclose(file);
  return pages * static_cast<size_t>(getpagesize());
}

void limit_room() {
  const size_t most = mapped() + kRoom;
  const rlimit limit = {most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) abort();
}

// One is left, for what a region needs.
void use_up_mappings() {
  constexpr size_t kPages = 70'000;
  const auto page = static_cast<size_t>(getpagesize());
  auto* all = static_cast<char*>(
      mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (all == MAP_FAILED) abort();
  for (size_t i = 1; i < kPages && mprotect(all + i * page, page, PROT_READ) == 0; i += 2) {
  }
  if (mprotect(all + 11 * page, page, PROT_NONE) != 0) abort();
}

// libc's malloc has no room, either, so these stand here.
char* blocks[2 * kRoom / 1000];
size_t held;

// Every block of that size that there is room for.
void take_all(size_t size) {
  while (held < std::size(blocks)) {
    char* block = static_cast<char*>(hummock_malloc(size));
    if (block == nullptr) return;
    memset(block, 7, 100);
    blocks[held++] = block;
  }
}

void free_all() {
  while (held != 0) hummock_free(blocks[--held]);
}

// Slots.
size_t holes() {
  size_t found = 0;
  for (const Region* region = regions; region != nullptr; region = region->next) {
    for (const HugePage& page : region->page) found += static_cast<size_t>(__builtin_popcount(page.holes));
  }
  return found;
}

// Fills the address space with small blocks and frees them: then all of it is in free regions. One of them.
char* fill_and_free(size_t size) {
  take_all(size);
  if (held * size < kRoom / 3) abort();
  char* one = blocks[held / 2];
  free_all();
  return one;
}

}  // namespace

TEST_CASE("very large blocks have the room of small ones that are free, and back") {
  if (!runs_here()) return;
  for (const size_t size : {size_t{1000}, 20 * kKiB, 300 * kKiB}) {
    CHECK(in_child([size] {
            limit_room();
            fill_and_free(size);
            for (int round = 0; round < 4; ++round) {
              take_all(kHuge);
              if (held < 4 || holes() == 0) return 1;
              free_all();
              fill_and_free(size);
            }
            return 0;
          }) == 0);
  }
}

TEST_CASE("memory that comes back reads as zeros") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          fill_and_free(20 * kKiB);
          hummock_free(hummock_malloc(kRoom / 2));
          if (holes() == 0) return 1;
          while (char* block = static_cast<char*>(hummock_calloc(1, 20 * kKiB))) {
            for (size_t i = 0; i < 20 * kKiB; ++i) {
              if (block[i] != 0) return 2;
            }
          }
          return holes() == 0 ? 0 : 3;
        }) == 0);
}

TEST_CASE("a block in a hole that is freed again is told") {
  if (!runs_here()) return;
  for (const size_t size : {size_t{1000}, 20 * kKiB, 300 * kKiB}) {
    CHECK(in_child([size] {
            limit_room();
            char* block = fill_and_free(size);
            if (hummock_malloc(kRoom / 2) == nullptr || holes() == 0) return 1;
            hummock_free(block);
            return 2;
          }) == 1000 + SIGABRT);
  }
}

TEST_CASE("a very large block grows as far as there is room") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          fill_and_free(20 * kKiB);
          size_t size = kHuge;
          char* block = static_cast<char*>(hummock_malloc(size));
          if (block == nullptr) return 1;
          block[0] = 5;
          while (char* grown = static_cast<char*>(hummock_realloc(block, size + kMiB))) {
            block = grown;
            size += kMiB;
          }
          return block[0] == 5 && size >= kRoom / 4 * 3 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a limit of data counts as one of address space does") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          const rlimit limit = {120 * kMiB, 120 * kMiB};
          if (setrlimit(RLIMIT_DATA, &limit) != 0) return 1;
          take_all(13 * kMiB);
          if (held < 7) return 2;
          free_all();
          take_all(35 * kMiB);
          return held == 3 ? 0 : 3;
        }) == 0);
}

TEST_CASE("where mappings are what is lacking, no holes are made, and nothing is lost") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          use_up_mappings();
          if (hummock_malloc(3 * kMiB) == nullptr) return 3;
          take_all(kMiB);
          free_all();
          take_all(kMiB);
          const size_t before = held;
          free_all();
          if (before < 8 || hummock_malloc(kHuge) != nullptr) return 1;
          take_all(kMiB);
          return holes() == 0 && held == before ? 0 : 2;
        }) == 0);
}

TEST_CASE("a first-class heap's block grows in place where two would not fit") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          hummock_heap_t* heap = hummock_heap_create();
          auto* block = static_cast<char*>(hummock_heap_malloc(heap, kRoom / 2));
          if (block == nullptr) return 1;
          block[0] = block[kRoom / 2 - 1] = 5;
          auto* grown = static_cast<char*>(hummock_heap_realloc(heap, block, kRoom / 4 * 3));
          if (grown == nullptr || grown[0] != 5 || grown[kRoom / 2 - 1] != 5) return 2;
          grown[kRoom / 4 * 3 - 1] = 1;
          if (hummock_heap_realloc(heap, grown, kRoom / 2) != grown) return 3;
          hummock_heap_destroy(heap);
          return hummock_malloc(kRoom / 2) != nullptr ? 0 : 4;
        }) == 0);
}

TEST_CASE("a request that cannot be served makes no holes") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          fill_and_free(20 * kKiB);
          if (hummock_malloc(2 * kRoom) != nullptr || hummock_malloc(kTiB) != nullptr) return 1;
          return holes() == 0 ? 0 : 2;
        }) == 0);
}

TEST_CASE("holes in which the program has mapped something are filled around it") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          size_t before = 0;
          for (int round = 0; round < 8; ++round) {
            char* place = fill_and_free(20 * kKiB);
            void* huge = hummock_malloc(kRoom / 2);
            if (huge == nullptr || holes() == 0) return 1;
            hummock_free(huge);
            hummock_trim(0);
            // Six pieces, 8 MiB apart.
            void* pieces[6];
            for (void*& piece : pieces) {
              piece = mmap(place, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              if (piece == MAP_FAILED) return 2;
              memset(piece, 9, kSize);
              place += 8 * kMiB;
            }
            fill_and_free(20 * kKiB);
            for (const void* piece : pieces) {
              if (static_cast<const char*>(piece)[kSize - 1] != 9) return 3;
            }
            size_t count = 0;
            for (const Region* region = regions; region != nullptr; region = region->next) ++count;
            if (round == 0) before = count;
            if (count > before + 4) return 4;
            for (void* piece : pieces) munmap(piece, kSize);
          }
          return 0;
        }) == 0);
}

TEST_CASE("children of fork fill holes again, and their parents do, too") {
  if (!runs_here()) return;
  CHECK(in_child([] {
          limit_room();
          fill_and_free(20 * kKiB);
          void* huge = hummock_malloc(kRoom / 2);
          const size_t before = holes();
          if (huge == nullptr || before == 0) return 1;
          const auto again = [huge] {
            hummock_free(huge);
            fill_and_free(20 * kKiB);
            return holes() == 0 ? 0 : 2;
          };
          if (in_child(again) != 0 || holes() != before) return 3;
          return again();
        }) == 0);
}
