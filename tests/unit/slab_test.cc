// Slabs: how much of its memory one hands out at once, and what it knows of the slot's earlier users.
#include <doctest/doctest.h>

#include <string.h>

#include <vector>

#include "os/os.h"
#include "pages/region.h"
#include "pages/regret.h"
#include "pages/runs.h"
#include "pages/span_cache.h"
#include "slab/slab.h"
#include "support/advises.h"

using namespace hummock;

namespace {

SlabHeader* make(size_t size) {
  SlabHeader* slab = slab::create(slab::class_of(size), Kind::slab);
  REQUIRE(slab != nullptr);
  return slab;
}

// So that no span cache keeps the slot.
void end(SlabHeader* slab) {
  slab::destroy(slab);
  pages::empty_caches();
}

unsigned carve(SlabHeader* slab, bool many = false) {
  return slab::take_fresh(slab, many).count;
}

bool is_partial(SlabHeader* slab) {
  return pages::is_partial(pages::region_of(slab), pages::slot_of(slab));
}

// On a slot without memory.
SlabHeader* make_on_clean(size_t size) {
  std::vector<SlabHeader*> others;
  SlabHeader* slab = make(size);
  for (; slab->gone.hides || slab->gone.touched != 0; slab = make(size)) others.push_back(slab);
  for (SlabHeader* each : others) end(each);
  return slab;
}

// As a large block leaves them: all of it has memory.
void spoil_slots(unsigned slots) {
  const pages::Span span = pages::allocate_span(slots);
  REQUIRE(span.header != nullptr);
  span.header->partial = false;
  memset(span.header->start, 1, slots * kSlotSize);
  pages::release_span(span.header);
  pages::empty_caches();
}

}  // namespace

TEST_CASE("one page at a time where there was no memory") {
  SlabHeader* slab = make_on_clean(512);
  CHECK(carve(slab) == 8);
  CHECK(carve(slab, true) == 8);
  CHECK(carve(slab) == 8);
  CHECK(slab->gone.touched == 3);
  end(slab);
}

TEST_CASE("where there is memory: few at first, or many if the class needs them") {
  SlabHeader* slab = make(4096);
  while (carve(slab) != 0) {
  }
  CHECK(slab->gone.touched == 16);
  slab::destroy(slab);
  SlabHeader* again = make(4096);
  REQUIRE(again == slab);  // from the span cache
  for (const unsigned count : {1, 1, 2, 4, 8, 0}) CHECK(carve(slab) == count);
  slab::destroy(slab);
  REQUIRE(make(4096) == slab);
  CHECK(carve(slab, true) == 16);
  end(slab);
}

TEST_CASE("a slot remembers how much of it slabs touched, until something else has it") {
  SlabHeader* slab = make_on_clean(64);
  carve(slab);
  CHECK_FALSE(is_partial(slab));
  end(slab);
  CHECK(is_partial(slab));
  CHECK(slab->gone.touched == 1);

  spoil_slots(1);
  slab = make(64);
  carve(slab);
  CHECK(slab->gone.hides);
  end(slab);
  CHECK_FALSE(is_partial(slab));
}

TEST_CASE("what is hidden under slabs is purged once, but not what they hand out next") {
  if (os::page_size() != kSmallPage) return;  // nothing is purged inside slabs
  constexpr unsigned kTogether = 64;          // less than may be dirty
  std::vector<SlabHeader*> slabs;
  os::calls.advise = support::count_advise;
  support::advises = 0;
  while (support::advises == 0 && slabs.size() / 8 < kTogether) {
    if (slabs.size() % kTogether == 0) spoil_slots(kTogether);
    slabs.push_back(make(64));
    slabs.back()->start[0] = 1;  // the memory is there
    CHECK(carve(slabs.back()) == 64);
  }
  REQUIRE(support::advises == 1);
  SlabHeader* last = slabs.back();
  CHECK_FALSE(last->gone.hides);
  CHECK(last->gone.touched == 1);
  // The slot is clean now behind its first page, so another slab there has nothing to purge.
  slab::destroy(last);
  CHECK(make(64) == last);
  CHECK(support::advises == 1);
  carve(last);
  slab::destroy(last);
  // A slab that needs more of the slot regrets the purge: eight pages but for the first quarter's four.
  const size_t regretted = pages::hidden_regret.value.bytes();
  CHECK(make(32 << 10) == last);
  CHECK(carve(last) == 1);
  CHECK(pages::hidden_regret.value.bytes() - regretted == 4 * kSmallPage);
  // Nor is there anything behind a block of 64 KiB.
  slabs.push_back(make(64 << 10));
  CHECK(slabs.back()->slots == 1);
  CHECK(support::advises == 1);
  os::calls.advise = support::real_calls.advise;
  for (SlabHeader* slab : slabs) slab::destroy(slab);
  pages::empty_caches();
}
