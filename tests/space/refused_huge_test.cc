// Huge pages for a space that the system refuses, at once or when they are to be populated.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <string>

#include "space/arena.h"
#include "space_support.h"

namespace {

using support::Space;
using support::space_of;

constexpr size_t kMiB = size_t{1} << 20;
const hummock::space::ArenaCalls system_calls = hummock::space::arena_calls;

char* foreign;  // what another thread maps in the hole that a refused mmap leaves

// The kernel unmaps the place of a fixed mapping before it looks for huge pages. Here it has none.
void* map_beside_a_thread(void* address, size_t size, int protection, int flags, int fd) {
  if ((flags & MAP_HUGETLB) == 0) return system_calls.map(address, size, protection, flags, fd);
  if ((flags & MAP_FIXED) != 0) system_calls.unmap(address, size);
  foreign = static_cast<char*>(system_calls.map(address, size, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1));
  memset(foreign, 0x5a, size);
  return errno = ENOMEM, MAP_FAILED;
}

}  // namespace

TEST_CASE("a space that gets no huge pages unmaps nothing of another thread") {
  hummock_space_options_t options = space_of(4 * kMiB);
  options.huge_pages = HUMMOCK_SPACE_TRY;
  foreign = nullptr;
  hummock::space::arena_calls.map = map_beside_a_thread;
  {
    Space space(options);
    hummock::space::arena_calls = system_calls;
    REQUIRE(foreign != nullptr);
    CHECK(std::string(foreign, 4 * kMiB) == std::string(4 * kMiB, 0x5a));
    CHECK(support::is_sound(space));
  }
  munmap(foreign, 4 * kMiB);
}

namespace {

char* set_aside;  // huge pages that the system gives, and does not populate
bool given_back;

void* map_set_aside(void* address, size_t size, int protection, int flags, int fd) {
  char* got = static_cast<char*>(system_calls.map(address, size, protection, flags & ~MAP_HUGETLB, fd));
  if ((flags & MAP_HUGETLB) != 0) set_aside = got;
  return got;
}
int unmap_watched(void* address, size_t size) {
  char* from = static_cast<char*>(address);
  if (from <= set_aside && set_aside < from + size) given_back = true;
  return system_calls.unmap(address, size);
}
int refuse_to_populate(void* address, size_t size, int advice) {
  constexpr int kPopulateWrite = 23;
  return advice == kPopulateWrite ? (errno = EFAULT, -1) : system_calls.advise(address, size, advice);
}

}  // namespace

TEST_CASE("a space whose huge pages cannot be had after all has small ones, or is refused") {
  hummock_space_options_t options = space_of(4 * kMiB);
  for (const uint32_t wish : {HUMMOCK_SPACE_TRY, HUMMOCK_SPACE_REQUIRE}) {
    options.huge_pages = wish;
    set_aside = nullptr;
    given_back = false;
    hummock::space::arena_calls.map = map_set_aside;
    hummock::space::arena_calls.unmap = unmap_watched;
    hummock::space::arena_calls.advise = refuse_to_populate;
    uint32_t achieved = 0;
    hummock_space_t* space = hummock_space_create(&options, &achieved);
    const int error = errno;
    hummock::space::arena_calls = system_calls;
    REQUIRE(set_aside != nullptr);
    CHECK(given_back);
    if (wish == HUMMOCK_SPACE_REQUIRE) {
      CHECK(space == nullptr);
      CHECK(error == ENOMEM);
      continue;
    }
    REQUIRE(space != nullptr);
    CHECK((achieved & HUMMOCK_SPACE_HUGE_PAGES) == 0);
    CHECK(support::is_sound(space));
    hummock_space_destroy(space);
  }
}
