// Every function of hummock.h means what its comment says.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <stdint.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

namespace {

constexpr size_t kTooLarge[] = {size_t{PTRDIFF_MAX} + 1, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096,
                                SIZE_MAX / 2 + 2};

// Runs `call`, which must return null, and gives its errno.
template <class Call>
int error_of(Call call) {
  errno = 0;
  void* block = call();
  CHECK(block == nullptr);
  return errno;
}

size_t page() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("malloc") {
  for (size_t size : {0, 1, 15, 16, 17, 1000, 100000}) {
    void* block = hummock_malloc(size);
    REQUIRE(block != nullptr);
    CHECK(support::is_aligned(block, alignof(max_align_t)));
    hummock_free(block);
  }
  std::set<void*> empty;
  for (int i = 0; i < 1000; ++i) empty.insert(hummock_malloc(0));
  CHECK(empty.size() == 1000);
  CHECK(empty.count(nullptr) == 0);
  for (void* block : empty) hummock_free(block);
  for (size_t size : kTooLarge) CHECK(error_of([&] { return hummock_malloc(size); }) == ENOMEM);
}

TEST_CASE("malloc leaves errno alone when it succeeds") {
  errno = 31;
  void* blocks[] = {hummock_malloc(10), hummock_malloc(100000), hummock_malloc(size_t{20} << 20)};
  CHECK(errno == 31);
  for (void* block : blocks) hummock_free(block);
}

TEST_CASE("free") {
  hummock_free(nullptr);
  for (size_t size : {size_t{10}, size_t{10000}, size_t{300000}, size_t{40} << 20}) {
    void* block = hummock_malloc(size);
    REQUIRE(block != nullptr);
    errno = 77;
    hummock_free(block);
    CHECK(errno == 77);
    block = hummock_malloc(size);
    std::thread([&] {
      errno = 78;
      hummock_free(block);
      CHECK(errno == 78);
    }).join();
  }
}

TEST_CASE("calloc") {
  for (size_t size = 1; size < 3000000; size += size / 3 + 1) {
    for (int again = 0; again < 3; ++again) {
      char* block = static_cast<char*>(hummock_calloc(3, size));
      REQUIRE(block != nullptr);
      CHECK(support::all_zero(block, 0, 3 * size));
      memset(block, 0xEE, 3 * size);
      hummock_free(block);
    }
  }
  CHECK(error_of([] { return hummock_calloc(SIZE_MAX, 2); }) == ENOMEM);
  constexpr size_t kRoot = size_t{1} << (sizeof(size_t) * 4);  // its square is 0
  CHECK(error_of([] { return hummock_calloc(kRoot, kRoot); }) == ENOMEM);
  CHECK(error_of([] { return hummock_calloc(1, size_t{PTRDIFF_MAX} + 1); }) == ENOMEM);
  for (size_t count : {0, 1}) {
    void* block = hummock_calloc(count, 0);
    CHECK(block != nullptr);
    hummock_free(block);
  }
}

TEST_CASE("realloc") {
  void* block = hummock_realloc(nullptr, 100);
  REQUIRE(block != nullptr);
  support::fill(block, 1, 100);
  for (size_t size : {5000, 70000, 1000000, 200, 100}) {
    block = hummock_realloc(block, size);
    REQUIRE(block != nullptr);
    CHECK(support::intact(block, 1, 100));
  }
  for (size_t size : kTooLarge) CHECK(error_of([&] { return hummock_realloc(block, size); }) == ENOMEM);
  CHECK(error_of([&] { return hummock_realloc(block, PTRDIFF_MAX); }) == ENOMEM);
  // A quarter more than these is small, when it is not seen to be more than a size can be.
  constexpr size_t kFourFifths = SIZE_MAX / 5 * 4;
  for (size_t size = kFourFifths - 4; size < kFourFifths + 1000; ++size)
    CHECK(error_of([&] { return hummock_realloc(block, size); }) == ENOMEM);
  CHECK(support::intact(block, 1, 100));
  CHECK(hummock_realloc(block, 0) == nullptr);
  block = hummock_realloc(nullptr, 0);
  CHECK(block != nullptr);
  hummock_free(block);
}

TEST_CASE("realloc to less than four fifths moves to a smaller block") {
  if (support::checked()) return;
  for (size_t size : {size_t{1000}, size_t{20000}, size_t{500000}, size_t{30} << 20}) {
    CAPTURE(size);
    void* block = hummock_malloc(size);
    support::fill(block, 2, size);
    const size_t room = hummock_usable_size(block);
    block = hummock_realloc(block, size * 3 / 4 - 64);
    REQUIRE(block != nullptr);
    CHECK(hummock_usable_size(block) < room);
    CHECK(support::intact(block, 2, size, size * 3 / 4 - 64));
    block = hummock_realloc(block, 1);
    REQUIRE(block != nullptr);
    CHECK(hummock_usable_size(block) <= 16);
    hummock_free(block);
  }
}

TEST_CASE("reallocarray") {
  void* block = hummock_reallocarray(nullptr, 10, 10);
  REQUIRE(block != nullptr);
  support::fill(block, 3, 100);
  CHECK(error_of([&] { return hummock_reallocarray(block, SIZE_MAX / 2, 3); }) == ENOMEM);
  CHECK(support::intact(block, 3, 100));
  block = hummock_reallocarray(block, 1000, 100);
  REQUIRE(block != nullptr);
  CHECK(support::intact(block, 3, 100));
  hummock_free(block);
}

TEST_CASE("aligned_alloc") {
  for (size_t alignment = 1; alignment <= size_t{1} << 24; alignment *= 2) {
    for (size_t size : {0, 1, 100, 5000, 100000}) {
      void* block = hummock_aligned_alloc(alignment, size);
      REQUIRE(block != nullptr);
      CHECK(support::is_aligned(block, alignment));
      CHECK(hummock_usable_size(block) >= size);
      hummock_free(block);
    }
  }
  for (size_t bad : {0, 3, 24, 4095}) {
    CHECK(error_of([&] { return hummock_aligned_alloc(bad, 64); }) == EINVAL);
  }
  CHECK(error_of([] { return hummock_aligned_alloc(4096, SIZE_MAX - 100); }) == ENOMEM);
  CHECK(error_of([] { return hummock_aligned_alloc(64, PTRDIFF_MAX); }) == ENOMEM);
  constexpr size_t kTop = SIZE_MAX / 2 + 1;
  CHECK(error_of([] { return hummock_aligned_alloc(kTop, 1); }) == ENOMEM);
  CHECK(error_of([] { return hummock_aligned_alloc(kTop / 2, kTop / 2); }) == ENOMEM);
}

TEST_CASE("posix_memalign") {
  void* block = nullptr;
  errno = 5;
  for (size_t alignment = 8; alignment <= size_t{1} << 22; alignment *= 2) {
    REQUIRE(hummock_posix_memalign(&block, alignment, 99) == 0);
    CHECK(support::is_aligned(block, alignment));
    hummock_free(block);
  }
  void* const untouched = &block;
  for (size_t bad : {0, 1, 2, 4, 12, 24, 4095}) {
    if (bad == sizeof(void*)) continue;
    block = untouched;
    CHECK(hummock_posix_memalign(&block, bad, 64) == EINVAL);
    CHECK(block == untouched);
  }
  CHECK(errno == 5);
  for (size_t size : kTooLarge) {
    errno = 5;
    CHECK(hummock_posix_memalign(&block, 64, size) == ENOMEM);
    CHECK(errno == ENOMEM);  // POSIX leaves it open; glibc does so
    CHECK(block == untouched);
  }
}

TEST_CASE("memalign rounds its alignment up, valloc and pvalloc know the page") {
  for (size_t alignment : {0, 1, 3, 7, 24, 100, 4097, 100000}) {
    void* block = hummock_memalign(alignment, 40);
    REQUIRE(block != nullptr);
    size_t power = 1;
    while (power < alignment) power *= 2;
    CHECK(support::is_aligned(block, power));
    hummock_free(block);
  }
  CHECK(error_of([] { return hummock_memalign(64, SIZE_MAX - 10); }) == ENOMEM);
  void* block = hummock_valloc(10);
  CHECK(support::is_aligned(block, page()));
  hummock_free(block);
  for (size_t size : {size_t{1}, page(), page() + 1}) {
    block = hummock_pvalloc(size);
    REQUIRE(block != nullptr);
    CHECK(support::is_aligned(block, page()));
    if (!support::checked()) CHECK(hummock_usable_size(block) >= (size + page() - 1) / page() * page());
    hummock_free(block);
  }
  CHECK(error_of([] { return hummock_pvalloc(SIZE_MAX - 10); }) == ENOMEM);
  CHECK(error_of([] { return hummock_valloc(SIZE_MAX - 10); }) == ENOMEM);
}

TEST_CASE("sized frees of every way to allocate") {
  hummock_free_sized(nullptr, 10);
  hummock_free_aligned_sized(nullptr, 64, 10);
  for (size_t size = 0; size < size_t{40} << 20; size += size / 5 + 1) {
    hummock_free_sized(hummock_malloc(size), size);
    hummock_free_sized(hummock_calloc(1, size), size);
    hummock_free_sized(hummock_realloc(hummock_malloc(size / 2), size + 1), size + 1);
  }
  for (size_t alignment = 8; alignment <= size_t{1} << 23; alignment *= 2) {
    for (size_t size : {0, 1, 100, 3000, 40000, 3000000}) {
      hummock_free_aligned_sized(hummock_aligned_alloc(alignment, size), alignment, size);
    }
  }
}

TEST_CASE("malloc_zero and realloc_zero") {
  for (size_t size = 0; size < 3000000; size += size / 3 + 1) {
    char* dirty = static_cast<char*>(hummock_malloc(size));
    memset(dirty, 0xEE, hummock_usable_size(dirty));
    hummock_free(dirty);
    char* block = static_cast<char*>(hummock_malloc_zero(size));
    REQUIRE(block != nullptr);
    CHECK(support::all_zero(block, 0, hummock_usable_size(block)));
    memset(block, 'z', size);
    size_t asked = size;
    for (size_t next : {size + size / 10 + 1, size / 2 + 1, size + 3, size * 3 + 1, size / 3 + 1}) {
      block = static_cast<char*>(hummock_realloc_zero(block, next));
      REQUIRE(block != nullptr);
      const size_t kept = std::min(asked, next);
      bool same = true;
      for (size_t i = 0; i < kept; ++i) same &= block[i] == 'z';
      CHECK(same);
      CHECK(support::all_zero(block, kept, hummock_usable_size(block)));
      memset(block, 'z', next);
      asked = next;
    }
    hummock_free(block);
  }
  char* block = static_cast<char*>(hummock_realloc_zero(nullptr, 500));
  REQUIRE(block != nullptr);
  CHECK(support::all_zero(block, 0, hummock_usable_size(block)));
  CHECK(error_of([&] { return hummock_realloc_zero(block, SIZE_MAX); }) == ENOMEM);
  CHECK(support::all_zero(block, 0, 500));
  hummock_free(block);
  CHECK(error_of([] { return hummock_malloc_zero(SIZE_MAX); }) == ENOMEM);
}

TEST_CASE("usable_size") {
  CHECK(hummock_usable_size(nullptr) == 0);
  void* block = hummock_malloc(1000);
  CHECK(hummock_usable_size(block) >= 1000);
  hummock_free(block);
}

TEST_CASE("trim gives memory back and says so") {
  std::vector<void*> blocks;
  for (size_t i = 0; i < 2000; ++i) {
    blocks.push_back(hummock_malloc(30000));
    memset(blocks.back(), 1, 30000);
  }
  const size_t committed = support::figures().committed;
  for (void* block : blocks) hummock_free(block);
  if (support::checked()) return;
  hummock_trim(0);
  const hummock_stats_t after = support::figures();
  CHECK(after.committed + 50000000 <= committed);
  CHECK(after.dirty < 4000000);
  CHECK(after.purged > 0);
  CHECK((hummock_trim(0) == 0 || hummock_trim(0) == 0));
  void* block = hummock_malloc(30000);
  memset(block, 1, 30000);
  hummock_free(block);
}

TEST_CASE("the library describes itself") {
  CHECK(hummock_is_active() == 0);
  const std::string version = std::to_string(HUMMOCK_VERSION_MAJOR) + "." +
                              std::to_string(HUMMOCK_VERSION_MINOR) + "." +
                              std::to_string(HUMMOCK_VERSION_PATCH);
  CHECK(hummock_version() == version);
}

TEST_CASE("options by name") {
  char value[64];
  REQUIRE(hummock_option_get("decay_ms", value, sizeof(value)) == 0);
  const std::string initial = value;
  CHECK(initial.size() > 0);
  CHECK(hummock_option_set("decay_ms", "250") == 0);
  REQUIRE(hummock_option_get("decay_ms", value, sizeof(value)) == 0);
  CHECK(std::string(value) == "250");
  CHECK(hummock_option_set("decay_ms", "often") == EINVAL);
  REQUIRE(hummock_option_get("decay_ms", value, sizeof(value)) == 0);
  CHECK(std::string(value) == "250");
  CHECK(hummock_option_set("decay_ms", initial.c_str()) == 0);
  CHECK(hummock_option_get("no_such_option", value, sizeof(value)) == ENOENT);
  CHECK(hummock_option_set("no_such_option", "1") == ENOENT);
  CHECK(hummock_option_set("checked", "on") == EPERM);
  CHECK(hummock_option_get("decay_ms", value, 1) == ERANGE);
  CHECK(hummock_option_get("decay_ms", value, 0) == ERANGE);
}
