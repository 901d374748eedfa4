// What stands behind a region: each way is tried, refused, and replaced by the next, with a system that says
// what the test wants.
#include "pages/backing.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <vector>

#include "base/options.h"
#include "os/os.h"
#include "pages/region.h"
#include "support/support.h"

namespace os = hummock::os;
namespace options = hummock::options;
using namespace hummock::pages;

namespace {

uint64_t clock_ns = 3'600'000'000'000;

}  // namespace

// The clock stands still unless a test moves it: how busy the machine is makes no difference.
extern "C" int clock_gettime(clockid_t, timespec* now) noexcept {
  now->tv_sec = static_cast<time_t>(clock_ns / 1'000'000'000);
  now->tv_nsec = static_cast<long>(clock_ns % 1'000'000'000);
  return 0;
}

namespace {

const os::Calls real = os::calls;
constexpr int kHugeAdvice = 14, kSmallAdvice = 15, kPopulate = 23, kCollapseAdvice = 25;

// A system that has no huge pages of its own: what is asked of it is counted, and answered as `says` tells.
struct System {
  int set_aside_error = 0;  // of a mapping of pages set aside; 0: served by small ones
  int huge_error = 0;
  int collapse_error = 0;
  int populate_error = 0;
  size_t set_aside = 0, no_reserve = 0, huge = 0, small = 0, collapses = 0;
  uint64_t collapse_ms = 0;                       // that a collapse takes
  void (*during_collapse)(char* page) = nullptr;  // what another thread might do meanwhile
  bool locked = false;                            // a slow call was made with page_lock held
} says;

// The lock's first word is 0 when nobody holds it; no other thread runs here.
void note_lock() {
  uintptr_t word;
  memcpy(&word, &page_lock, sizeof word);
  says.locked |= word != 0;
}

void* map(void* hint, size_t size, int protection, int flags) {
  if ((flags & MAP_HUGETLB) == 0) return real.map(hint, size, protection, flags);
  note_lock();
  ++says.set_aside;
  says.no_reserve += (flags & MAP_NORESERVE) != 0;
  if (says.set_aside_error != 0) {
    errno = says.set_aside_error;
    return MAP_FAILED;
  }
  return real.map(hint, size, protection, MAP_PRIVATE | MAP_ANONYMOUS);
}

int advise(void* address, size_t size, int advice) {
  int error = 0;
  if (advice == kHugeAdvice) ++says.huge, error = says.huge_error;
  if (advice == kSmallAdvice) ++says.small;
  if (advice == kPopulate) error = says.populate_error;
  if (advice == kCollapseAdvice) {
    ++says.collapses;
    error = says.collapse_error;
    clock_ns += says.collapse_ms * 1'000'000;
    if (says.during_collapse != nullptr) says.during_collapse(static_cast<char*>(address));
  }
  if (advice >= kHugeAdvice) {
    note_lock();
    errno = error;
    return error == 0 ? 0 : -1;
  }
  note_lock();
  return real.advise(address, size, advice);
}

struct With {
  explicit With(const char* conf) {
    hummock_free(hummock_malloc(1));  // reads the options, which would go over these
    says = {};
    back_offs = {};
    options::load(conf, nullptr);
    os::calls = {map, real.unmap, advise, real.remap};
    pinned_before = pinned_bytes;
    advised_before = advised_bytes;
    refusals_before = huge_refusals;
  }
  ~With() {
    os::calls = real;
    options::load(nullptr, nullptr);
    pinned_bytes = pinned_before;
    advised_bytes = advised_before;
  }
  size_t pinned() const { return pinned_bytes - pinned_before; }
  size_t advised() const { return advised_bytes - advised_before; }
  size_t refusals() const { return huge_refusals - refusals_before; }
  size_t pinned_before, advised_before, refusals_before;
};

NewRegion map_one(size_t size = hummock::kRegionSize) {
  const NewRegion fresh = map_region(size);
  if (fresh.base != nullptr) real.unmap(fresh.base, size);
  return fresh;
}

void pass(uint64_t ms) {
  clock_ns += ms * 1'000'000;
}

bool thp_possible() {
  const char* why = nullptr;
  return os::transparent_allowed(&why);
}

}  // namespace

TEST_CASE("back-off doubles, has an end, and is forgotten when served") {
  BackOff back_off;
  CHECK(back_off.may(0));
  uint64_t now = 1000, expected = 100;
  for (int i = 0; i < 20; ++i) {
    CHECK(back_off.may(now));
    const uint64_t wait = back_off.refused(now);
    CHECK(wait == expected);
    CHECK(!back_off.may(now));
    CHECK(!back_off.may(now + wait - 1));
    now += wait;
    expected = expected * 2 < BackOff::kMost ? expected * 2 : BackOff::kMost;
  }
  back_off.served();
  CHECK(back_off.refused(now) == BackOff::kFirst);
}

TEST_CASE("off asks for small pages") {
  With with("huge_pages:off");
  CHECK(map_one().backing == Backing::small);
  CHECK(says.small == 1);
  CHECK(says.huge + says.set_aside == 0);
}

TEST_CASE("by default a region is of small pages") {
  With with("");
  CHECK(map_one().backing == Backing::small);
  CHECK(says.small == 1);  // also where the system makes everything huge
  CHECK(says.huge + says.set_aside == 0);
}

TEST_CASE("pages set aside: never with MAP_NORESERVE, never under the lock, at a multiple of a region") {
  With with("huge_pages:2m");
  const NewRegion fresh = map_one();
  CHECK(fresh.backing == Backing::pinned);
  CHECK(reinterpret_cast<uintptr_t>(fresh.base) % hummock::kRegionSize == 0);
  CHECK(says.set_aside == 1);
  CHECK(says.no_reserve == 0);
  CHECK(!says.locked);
  CHECK(with.pinned() == hummock::kRegionSize);
}

TEST_CASE("refused: transparent ones, and no second try at once") {
  if (!thp_possible()) return;
  With with("huge_pages:2m");
  says.set_aside_error = ENOMEM;
  for (int i = 0; i < 5; ++i) CHECK(map_one().backing == Backing::whole);
  CHECK(says.set_aside == 1);
  CHECK(with.refusals() == 1);
  CHECK(with.pinned() == 0);
  CHECK(with.advised() == 5 * hummock::kRegionSize);
  pass(99);
  map_one();
  CHECK(says.set_aside == 1);
  pass(1);
  CHECK(map_one().backing == Backing::whole);
  CHECK(says.set_aside == 2);
  pass(199);
  map_one();
  CHECK(says.set_aside == 2);  // 200 ms now
  says.set_aside_error = 0;
  pass(1);
  CHECK(map_one().backing == Backing::pinned);
}

TEST_CASE("pages that cannot be brought in are not kept") {
  With with("huge_pages:2m");
  says.populate_error = EFAULT;  // the limit of a group would kill the program when it touched them
  CHECK(map_one().backing != Backing::pinned);
  CHECK(with.pinned() == 0);
  pass(100);
  says.populate_error = EINVAL;  // an older kernel, which has reserved them
  CHECK(map_one().backing == Backing::pinned);
}

TEST_CASE("all refused: small pages, and the program goes on") {
  With with("huge_pages:2m");
  says.set_aside_error = ENOMEM;
  says.huge_error = EINVAL;
  for (int i = 0; i < 3; ++i) {
    const NewRegion fresh = map_one();
    CHECK(fresh.base != nullptr);
    CHECK(fresh.backing == Backing::small);
  }
  CHECK(says.huge <= 1);
  CHECK(with.advised() == 0);
}

TEST_CASE("1 GiB refused: 2 MiB") {
  With with("huge_pages:1g");
  says.set_aside_error = EINVAL;
  CHECK(map_one().backing != Backing::pinned);
  CHECK(says.set_aside == 2);
}

TEST_CASE("required: nothing else will do") {
  With with("huge_pages:require");
  CHECK(map_one().backing == Backing::pinned);
  says.set_aside_error = ENOMEM;
  CHECK(map_region(hummock::kRegionSize).base == nullptr);
  CHECK(says.huge == 0);
}

TEST_CASE("the cap holds for both kinds together") {
  With with("huge_pages:2m,huge_max:64M");
  NewRegion fresh[4];
  for (NewRegion& each : fresh) each = map_one();
  CHECK(with.pinned() == 2 * hummock::kRegionSize);
  CHECK(with.advised() == 0);
  CHECK(fresh[1].backing == Backing::pinned);
  CHECK(fresh[2].backing == Backing::small);
  CHECK(fresh[3].backing == Backing::small);
}

TEST_CASE("full pages are collapsed, at most one in a while, and nothing slow is called under the lock") {
  if (!thp_possible()) return;
  With with("huge_pages:thp");
  std::vector<void*> blocks;
  for (int i = 0; i < 60000; ++i) blocks.push_back(hummock_malloc(1000));
  CHECK(says.huge > 0);
  says.collapse_ms = 1;  // so the next one is due in 50 ms
  for (int i = 0; i < 49; ++i) {
    collapse_one();
    pass(1);
  }
  CHECK(says.collapses == 1);
  for (int i = 0; i < 500; ++i) {
    collapse_one();
    pass(1);
  }
  CHECK(says.collapses >= 10);
  CHECK(says.collapses <= 12);
  for (int i = 0; i < 500; ++i) {
    collapse_one();
    pass(100);
  }
  CHECK(says.collapses < 40);  // each of the 30 huge pages once
  for (void* block : blocks) hummock_free(block);
  hummock_trim(0);
  CHECK(!says.locked);
}

TEST_CASE("a collapse that is refused is not tried again at once") {
  if (!thp_possible()) return;
  With with("huge_pages:thp");
  std::vector<void*> blocks;
  // More than the case above left behind, whose huge pages have had their turn.
  for (int i = 0; i < 80000; ++i) blocks.push_back(hummock_malloc(2000));
  says.collapse_error = EAGAIN;
  pass(100);
  for (int i = 0; i < 1000; ++i) collapse_one();
  CHECK(says.collapses == 1);
  pass(99);
  collapse_one();
  CHECK(says.collapses == 1);
  pass(1);
  for (int i = 0; i < 3; ++i) collapse_one();  // looks at the system's settings again, in two steps at most
  CHECK(says.collapses == 2);
  for (void* block : blocks) hummock_free(block);
}

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A heap that is large enough for huge pages: so many bytes at the start of each block are touched.
std::vector<char*> blocks_of_a_mib(size_t count, size_t touched) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back(static_cast<char*>(hummock_malloc(kMiB)));
    for (size_t at = 0; at < touched; at += 4096) blocks.back()[at] = 1;
  }
  return blocks;
}

void tick_for(uint64_t ms) {
  for (uint64_t i = 0; i < ms; ++i) {
    collapse_one();
    pass(1);
  }
}

void release_all(const std::vector<char*>& blocks) {
  for (char* block : blocks) hummock_free(block);
  hummock_trim(0);
}

}  // namespace

TEST_CASE("by default a large heap's huge pages are made of what is in use") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  const std::vector<char*> blocks = blocks_of_a_mib(300, kMiB);
  CHECK(says.huge + says.collapses == 0);
  CHECK(tick_pending());
  says.collapse_ms = 1;
  pass(60000);
  tick_for(520);
  CHECK(says.collapses >= 8);  // one in 50 ms
  CHECK(says.collapses <= 12);
  CHECK(says.huge == says.collapses);
  CHECK(says.small >= says.collapses);  // nothing becomes huge by itself
  CHECK(with.advised() == says.collapses * kHugePageSize);
  says.collapse_ms = 0;
  for (int i = 0; i < 400; ++i) collapse_one(), pass(100);
  CHECK(says.collapses > 60);    // some blocks stand where a case above had asked for huge pages
  CHECK(says.collapses <= 150);  // each once
  release_all(blocks);
  CHECK(with.advised() == 0);
  CHECK(!says.locked);
}

TEST_CASE("by default what is not in use stays on small pages") {
  if (!thp_possible()) return;
#if HUMMOCK_TEST_EMULATED
  if (os::page_size() > 4096) return;  // qemu's mincore answers for pages of 4 KiB
#endif
  hummock_trim(0);
  With with("");
  std::vector<char*> blocks = blocks_of_a_mib(300, kMiB * 7 / 10);
  pass(60000);
  tick_for(2000);
  CHECK(says.collapses == 0);
  CHECK(with.advised() == 0);
  // More is touched; and there is a heap that is full, but not large.
  for (char* block : blocks) memset(block, 1, kMiB);
  while (blocks.size() > 50) hummock_free(blocks.back()), blocks.pop_back();
  hummock_trim(0);
  const auto before = says.collapses;  // while it was large
  tick_for(2000);
  CHECK(says.collapses == before);
  release_all(blocks);
}

TEST_CASE("what is given back while its page becomes huge reads as zeros for its next owner alone") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  static std::vector<char*> blocks;
  blocks = blocks_of_a_mib(300, kMiB);
  // Another thread's purge makes the page small again, which is loose meanwhile.
  says.during_collapse = [](char* page) {
    for (char*& block : blocks) {
      if (block < page || block >= page + kHugePageSize) continue;
      hummock_free(block);
      block = blocks.back();
      blocks.pop_back();
      break;
    }
    hummock_trim(0);
  };
  pass(60000);
  for (int i = 0; i < 1000 && says.collapses == 0; ++i) tick_for(1);
  REQUIRE(says.collapses == 1);
  CHECK(with.advised() == 0);
  std::vector<char*> again;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      again.push_back(static_cast<char*>(hummock_calloc(1, kMiB)));
      REQUIRE(again.back() != nullptr);
      CHECK(support::all_zero(again.back(), 0, kMiB));
      memset(again.back(), 0xff, kMiB);
    }
    for (char* block : again) hummock_free(block);
    again.clear();
  }
  release_all(blocks);
}

TEST_CASE("by default a refused collapse leaves small pages") {
  if (!thp_possible()) return;
  hummock_trim(0);
  With with("");
  const std::vector<char*> blocks = blocks_of_a_mib(300, kMiB);
  says.collapse_error = EINVAL;
  pass(60000);
  tick_for(99);
  CHECK(says.collapses == 1);
  CHECK(with.refusals() == 1);
  CHECK(with.advised() == 0);
  release_all(blocks);
}

TEST_CASE("what a huge page gives back") {
  HugePage page = {};
  page.dirty = 0xffffffff;
  for (const Backing backing :
       {Backing::small, Backing::loose, Backing::whole, Backing::kept, Backing::pinned}) {
    CAPTURE(static_cast<int>(backing));
    page.backing = backing;
    page.used = 0;
    const bool stays = backing == Backing::kept || backing == Backing::pinned;
    CHECK(page.purgeable() == (stays ? 0 : 0xffffffff));
    page.used = 0x0000ffff;
    CHECK(page.purgeable() == (backing == Backing::small || backing == Backing::loose ? 0xffff0000 : 0));
    page.used = 0x7fffffff;
    CHECK(page.purgeable() == (backing == Backing::small ? 0x80000000 : 0));
    CHECK(page.warm() == 0x80000000);
  }
}
