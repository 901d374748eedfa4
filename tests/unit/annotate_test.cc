// What checked mode tells tools that watch each access: run under valgrind's memcheck, and in the build with
// AddressSanitizer. Elsewhere there is nobody to ask.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <stddef.h>
#include <string.h>

#include <vector>

#include "base/annotate.h"

const char* hummock_conf = "checked:on,quarantine:100K";

namespace {

#if defined(__SANITIZE_ADDRESS__)
bool is_watched() {
  return true;
}
bool is_forbidden(const volatile char* p) {
  return __asan_address_is_poisoned(p) != 0;
}
#elif defined(HUMMOCK_HAS_MEMCHECK)
bool is_watched() {
  return RUNNING_ON_VALGRIND != 0;
}
bool is_forbidden(
    [[maybe_unused]] const volatile char* p) {  // nothing where valgrind does not know the machine
  const hummock::base::Unwatched unwatched;
  return VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 1) != 0;
}
#else
bool is_watched() {
  return false;
}
bool is_forbidden(const volatile char*) {
  return false;
}
#endif

constexpr size_t kSizes[] = {1, 8, 16, 100, 4000, 70000};

void check_live(const char* block, size_t size) {
  CAPTURE(size);
  CHECK(!is_forbidden(block));
  CHECK(!is_forbidden(block + size / 2));
  CHECK(!is_forbidden(block + size - 1));
  if (!is_watched()) return;
  CHECK(is_forbidden(block - 1));
  CHECK(is_forbidden(block + size));
}

}  // namespace

TEST_CASE("a live block may be touched, the bytes around it may not, and nothing of a freed one") {
  for (const size_t size : kSizes) {
    char* block = static_cast<char*>(hummock_malloc(size));
    memset(block, 1, size);
    check_live(block, size);
    hummock_free(block);
    if (!is_watched()) continue;
    CHECK(is_forbidden(block));
    CHECK(is_forbidden(block + size - 1));
  }
}

TEST_CASE("realloc: the new block is live, the old one is not") {
  for (const size_t size : kSizes) {
    char* block = static_cast<char*>(hummock_calloc(1, size));
    char* moved = static_cast<char*>(hummock_realloc(block, size + 50));
    memset(moved, 1, size + 50);
    check_live(moved, size + 50);
    CHECK(is_forbidden(block) == is_watched());
    hummock_free(moved);
  }
}

TEST_CASE("memory that was forbidden serves again") {
  for (int round = 0; round < 3; ++round) {
    hummock_heap_t* heap = hummock_heap_create();
    std::vector<char*> blocks;
    for (int i = 0; i < 300; ++i) {
      const size_t size = 10 + static_cast<size_t>(i * 37 % 2000);
      char* block = static_cast<char*>(i % 2 == 0 ? hummock_heap_malloc(heap, size) : hummock_malloc(size));
      memset(block, i, size);
      check_live(block, size);
      i % 3 == 0 || i % 2 != 0 ? hummock_free(block) : blocks.push_back(block);
    }
    hummock_heap_destroy(heap);  // with what is left in it
  }
}
