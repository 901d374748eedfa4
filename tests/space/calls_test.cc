// Creation, its options and refusals, single calls, misuse, and failing system calls.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "space/arena.h"
#include "space_support.h"
#include "support/capture.h"

namespace {

using support::Space;
using support::space_of;

constexpr size_t kMiB = size_t{1} << 20;

int refused(hummock_space_options_t options) {
  errno = 0;
  hummock_space_t* space = hummock_space_create(&options, nullptr);
  if (space == nullptr) return errno;
  hummock_space_destroy(space);
  return 0;
}

template <class Change>
int refused_with(Change change) {
  hummock_space_options_t options = space_of(kMiB);
  change(options);
  return refused(options);
}

}  // namespace

TEST_CASE("options that contradict each other are refused") {
  using O = hummock_space_options_t;
  CHECK(refused(space_of(kMiB)) == 0);
  CHECK(hummock_space_create(nullptr, nullptr) == nullptr);
  CHECK(refused_with([](O& o) { o.size = 3; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.size += 8; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.initial = 0; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.initial = 1; }) == 0);  // rounded up to a page
  CHECK(refused_with([](O& o) { o.initial = SIZE_MAX; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.maximum = o.initial - 1; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.maximum = SIZE_MAX; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.threads = 3; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.policy = 2; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.lock = 3; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.zero = 2; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8; }) == 0);
  CHECK(refused_with([](O& o) { o.cache_blocks = 1025; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 257, o.threads = 1; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.cache_step = 32; }) ==
        EINVAL);  // the owner's are exact
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.cache_largest = 256 << 10; }) == 0);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.cache_largest = (256 << 10) + 1; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.policy = 1; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_step = 32; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.threads = 1, o.cache_step = 24; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.cache_blocks = 8, o.threads = 1, o.policy = 1; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.shared = 1; }) == EINVAL);  // needs a lock that survives its holder
  alignas(64) static char memory[65536];
  CHECK(refused_with([](O& o) { o.memory = memory + 8; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.memory = memory, o.expand = 4096; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.memory = memory, o.initial = 64; }) == EINVAL);
  CHECK(refused_with([](O& o) { o.memory = memory, o.initial = sizeof memory; }) == 0);
}

TEST_CASE("sizes that no block can have") {
  Space space(space_of(kMiB));
  for (const size_t size : {kMiB, kMiB * 2, size_t{1} << 39, size_t{1} << 40, SIZE_MAX / 2, SIZE_MAX - 24,
                            SIZE_MAX - 8, SIZE_MAX}) {
    CAPTURE(size);
    errno = 0;
    CHECK(hummock_space_malloc(space, size) == nullptr);
    CHECK(errno == ENOMEM);
    CHECK(hummock_space_memalign(space, 4096, size) == nullptr);
    CHECK(hummock_space_calloc(space, 3, size) == nullptr);
    void* block = hummock_space_malloc(space, 100);
    CHECK(hummock_space_realloc(space, block, size) == nullptr);
    hummock_space_free(space, block);
  }
  CHECK(hummock_space_memalign(space, size_t{1} << 62, 8) == nullptr);
  errno = 0;
  CHECK(hummock_space_memalign(space, 24, 8) == nullptr);
  CHECK(errno == EINVAL);
  const hummock_space_stats_t stats = support::figures(space);
  CHECK(stats.failures == 8 * 4 + 1 - 4);  // calloc itself refused the four products that overflow
  CHECK(stats.live_blocks == 0);
  CHECK(support::is_sound(space));
}

TEST_CASE("the whole space in one block, and again") {
  for (const uint32_t policy : {HUMMOCK_SPACE_DENSE, HUMMOCK_SPACE_PROVEN}) {
    Space space(space_of(kMiB, HUMMOCK_SPACE_OWNER, policy));
    const size_t most = support::figures(space).largest_free - 8;
    for (int i = 0; i < 3; ++i) {
      void* block = hummock_space_malloc(space, most);
      REQUIRE(block != nullptr);
      memset(block, 0xff, most);
      if (policy == HUMMOCK_SPACE_DENSE) CHECK(hummock_space_malloc(space, 1) == nullptr);
      hummock_space_free(space, block);
    }
    CHECK(support::is_sound(space));
  }
}

TEST_CASE("a block just freed can be had again when nothing else can") {
  Space space(space_of(kMiB));
  support::Random random(support::run_seed());
  std::vector<void*> blocks;
  std::vector<size_t> sizes;
  for (;;) {
    const size_t size = random.between(1, 3000);
    void* p = hummock_space_malloc(space, size);
    if (p == nullptr) break;
    blocks.push_back(p);
    sizes.push_back(size);
  }
  while (hummock_space_malloc(space, 1) != nullptr) {
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    hummock_space_free(space, blocks[i]);
    blocks[i] = hummock_space_malloc(space, sizes[i]);
    REQUIRE(blocks[i] != nullptr);
  }
}

TEST_CASE("realloc keeps the alignment that was asked for") {
  for (const uint32_t policy : {HUMMOCK_SPACE_DENSE, HUMMOCK_SPACE_PROVEN}) {
    Space space(space_of(16 * kMiB, HUMMOCK_SPACE_OWNER, policy));
    for (const size_t alignment : {32, 256, 4096, 65536}) {
      void* block = hummock_space_memalign(space, alignment, 100);
      void* wall = hummock_space_malloc(space, 16);
      void* moved = hummock_space_realloc(space, block, 50000);
      REQUIRE(moved != nullptr);
      CHECK(support::is_aligned(moved, alignment));
      hummock_space_free(space, wall);
      hummock_space_free(space, moved);
    }
    CHECK(support::is_sound(space));
    CHECK(support::figures(space).live_blocks == 0);
  }
}

TEST_CASE("expand by itself, by hand, and shrink") {
  hummock_space_options_t options = space_of(kMiB);
  options.maximum = 4 * kMiB;
  options.expand = 65536;
  Space space(options);
  void* large = hummock_space_malloc(space, 2 * kMiB);
  REQUIRE(large != nullptr);
  memset(large, 1, 2 * kMiB);
  CHECK(support::figures(space).expansions == 1);
  CHECK(support::figures(space).failures == 0);
  CHECK(hummock_space_malloc(space, 8 * kMiB) == nullptr);
  CHECK(support::figures(space).failures == 1);
  CHECK(hummock_space_expand(space, 64 * kMiB) == ENOMEM);
  hummock_space_free(space, large);
  CHECK(hummock_space_shrink(space, SIZE_MAX) > 0);
  CHECK(support::figures(space).bytes == kMiB);
  CHECK(hummock_space_expand(space, 3 * kMiB) == 0);
  CHECK(hummock_space_expand(space, 1) == ENOMEM);
  CHECK(support::is_sound(space));
}

TEST_CASE("memory taken at the first allocation") {
  hummock_space_options_t options = space_of(8 * kMiB);
  options.reserve = HUMMOCK_SPACE_AT_FIRST;
  Space space(options);
  CHECK(support::figures(space).bytes < kMiB);
  void* block = hummock_space_malloc(space, 7 * kMiB);
  REQUIRE(block != nullptr);
  CHECK(support::figures(space).bytes == 8 * kMiB);
  CHECK(support::figures(space).failures == 0);
}

TEST_CASE("what creation achieves") {
  hummock_space_options_t options = space_of(4 * kMiB);
  options.populate = HUMMOCK_SPACE_REQUIRE;
  options.lock = HUMMOCK_SPACE_TRY;
  options.no_fork = HUMMOCK_SPACE_REQUIRE;
  options.huge_pages = HUMMOCK_SPACE_TRY;
  Space space(options);
  CHECK((space.achieved & HUMMOCK_SPACE_POPULATED) != 0);
  CHECK((space.achieved & HUMMOCK_SPACE_NO_FORK) != 0);
  CHECK(support::figures(space).achieved == space.achieved);
  Space plain(space_of(kMiB));
  CHECK(plain.achieved == 0);
}

namespace {

int fail_at;  // the system call that fails, counted down
int error_number;

bool fails() {
  if (fail_at == 0 || --fail_at != 0) return false;
  errno = error_number;
  return true;
}

// Every raw call of the table, with the failure before it.
const hummock::space::ArenaCalls system_calls = hummock::space::arena_calls;
const hummock::space::ArenaCalls failing_calls = {
    [](void* a, size_t n, int p, int f, int d) {
      return fails() ? MAP_FAILED : system_calls.map(a, n, p, f, d);
    },
    system_calls.unmap,
    [](void* a, size_t n, int p) { return fails() ? -1 : system_calls.protect(a, n, p); },
    [](void* a, size_t n, int w) { return fails() ? -1 : system_calls.advise(a, n, w); },
    [](void* a, size_t n) { return fails() ? -1 : system_calls.lock(a, n); },
    [](int d, size_t n) { return fails() ? -1 : system_calls.truncate(d, n); }};

}  // namespace

TEST_CASE("every failing system call of creation is told, and leaves nothing behind") {
  { Space first(space_of(kMiB)); }  // the process's records are there
  const size_t records = support::figures(hummock_space_of_process(HUMMOCK_SPACE_INTERNAL)).live_blocks;
  hummock_space_options_t options = space_of(4 * kMiB, HUMMOCK_SPACE_INHERIT);
  options.populate = options.lock = HUMMOCK_SPACE_REQUIRE;
  for (const uint32_t shared : {0u, 1u}) {
    options.shared = shared;
    options.no_fork = shared != 0 ? HUMMOCK_SPACE_OFF : HUMMOCK_SPACE_REQUIRE;
    error_number = EAGAIN;
    int failures = 0;
    for (int at = 1;; ++at) {
      fail_at = at;
      hummock::space::arena_calls = failing_calls;
      const int error = refused(options);
      hummock::space::arena_calls = system_calls;
      if (fail_at != 0) break;  // fewer calls than that
      CHECK(error == EAGAIN);
      ++failures;
    }
    fail_at = 0;
    CHECK(failures >= 4);
  }
  CHECK(support::figures(hummock_space_of_process(HUMMOCK_SPACE_INTERNAL)).live_blocks == records);
}

TEST_CASE("a wish that fails is not achieved; an expansion that fails changes nothing") {
  hummock_space_options_t options = space_of(kMiB);
  options.maximum = 8 * kMiB;
  options.lock = HUMMOCK_SPACE_TRY;
  error_number = EPERM;
  hummock::space::arena_calls.lock = [](void*, size_t) { return errno = EPERM, -1; };
  {
    Space space(options);
    CHECK((space.achieved & HUMMOCK_SPACE_LOCKED) == 0);
    CHECK((space.achieved & HUMMOCK_SPACE_POPULATED) != 0);
    hummock::space::arena_calls.protect = [](void*, size_t, int) { return errno = ENOMEM, -1; };
    CHECK(hummock_space_expand(space, kMiB) == ENOMEM);
    CHECK(support::figures(space).bytes == kMiB);
    CHECK(hummock_space_malloc(space, 2 * kMiB) == nullptr);
    hummock::space::arena_calls.protect = system_calls.protect;
    CHECK(hummock_space_expand(space, kMiB) == 0);
    CHECK(support::is_sound(space));
  }
  hummock::space::arena_calls = system_calls;
}

TEST_CASE("misuse is told in one line and ends the process") {
  Space space(space_of(kMiB));
  hummock_space_t* s = space;
  Space other(space_of(kMiB));
  char* block = static_cast<char*>(hummock_space_malloc(space, 100));
  void* wall = hummock_space_malloc(space, 100);
  const auto died_with = [](const std::string& words, auto act) {
    const support::Ending ending = support::ending_of(act);
    INFO(ending.said);
    CHECK(ending.aborted);
    CHECK(ending.said.find(words) != std::string::npos);
    CHECK(std::count(ending.said.begin(), ending.said.end(), '\n') == 1);
  };
  died_with("double free", [&] { hummock_space_free(s, block), hummock_space_free(s, block); });
  died_with("double free", [&] {  // joined with both its neighbours meanwhile
    hummock_space_free(s, block), hummock_space_free(s, wall), hummock_space_free(s, wall);
  });
  died_with("no block begins there", [&] { hummock_space_free(s, block + 16); });
  died_with("not aligned", [&] { hummock_space_free(s, block + 1); });
  died_with("not in the space", [&] { hummock_space_free(other, block); });
  died_with("not in the space", [&] { hummock_space_free(s, &space); });
  died_with("double free", [&] { hummock_space_free(s, block), hummock_space_realloc(s, block, 8); });
  died_with("realloc(", [&] { hummock_space_free(s, block), hummock_space_realloc(s, block, 8); });
  died_with("usable_size(", [&] { hummock_space_usable_size(s, block + 32); });
  died_with("overwritten", [&] {  // an overflow into the next header
    memset(block, 'x', hummock_space_usable_size(s, block) + 8);
    hummock_space_free(s, wall);
  });
  died_with("double free", [&] {  // by threads that do not own the space
    std::thread([&] { hummock_space_free(s, block), hummock_space_free(s, block); }).join();
  });
}

TEST_CASE("misuse of cached blocks") {
  hummock_space_options_t options = space_of(kMiB, HUMMOCK_SPACE_SPIN);
  options.cache_blocks = 8;
  Space space(options);
  void* block = hummock_space_malloc(space, 100);
  const support::Ending twice =
      support::ending_of([&] { hummock_space_free(space, block), hummock_space_free(space, block); });
  CHECK(twice.aborted);
  CHECK(twice.said.find("double free") != std::string::npos);
}

// The records of some end at a page's end, or 16 bytes before.
TEST_CASE("the shortest spaces, whatever their records take") {
  unsigned made = 0;
  for (const uint32_t reserve : {HUMMOCK_SPACE_AT_START, HUMMOCK_SPACE_AT_FIRST}) {
    for (uint32_t largest = 16; largest <= 4096; largest += 16) {
      for (size_t bytes = 8192; bytes <= 32768; bytes += 4096) {
        hummock_space_options_t options = space_of(bytes);
        options.reserve = reserve;
        options.cache_blocks = 8;
        options.cache_largest = largest;
        hummock_space_t* space = hummock_space_create(&options, nullptr);
        if (space == nullptr) continue;
        ++made;
        CHECK(hummock_space_walk(
                  space, [](void*, void*, size_t, int) { return 1; }, nullptr) == 0);
        hummock_space_destroy(space);
      }
    }
  }
  CHECK(made > 0);
}
