// What stands behind a region: each way is tried, refused, and replaced by the next, with a system that says
// what the test wants.
#include "pages/backing.h"

#include <doctest/doctest.h>

#include <initializer_list>

#include "support/faked_huge_pages.h"

using namespace hummock::pages;
using namespace support::huge_pages;

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
