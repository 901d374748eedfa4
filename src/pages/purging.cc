// Slots that a thread purges. The system call is made without the lock; meanwhile they count as used, so
// nobody takes or purges them.
#include "base/bits.h"
#include "pages/region.h"
#include "pages/runs.h"

namespace hummock::pages {
namespace {

unsigned forks;  // in whose children this process is. Guarded by page_lock

}  // namespace

unsigned begin_purging(Region* region, unsigned slot, unsigned slots) {
  SlabHeader* run = run_of(region, slot);
  for_parts(region, slot, slots, [](HugePage* page, uint32_t mask, unsigned) {
    make_small(page);
    discount(page);
    page->purging |= mask;
    page->used |= mask;
    count(page);
    refile(page);
  });
  cut_run(run, slot, slots);
  return forks;
}

bool is_purging(unsigned begun) {
  return forks == begun;
}

void end_purging(Region* region, unsigned slot, unsigned slots, bool gone) {
  for_parts(region, slot, slots, [gone](HugePage* page, uint32_t mask, unsigned) {
    discount(page);
    page->purging &= ~mask;
    page->collapsed = false;
    page->used &= ~mask;
    if (gone) page->dirty &= ~mask;
    page->unread &= page->dirty;
    count(page);
    refile(page);
  });
  join_run(region, slot, slots);
}

void end_purging_in_child() {
  ++forks;
  Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE);
  for (; region != nullptr; region = region->next) {
    for (unsigned i = 0; i < region->huge_pages; ++i) {
      while (const uint32_t slots = region->page[i].purging & ~region->page[i].holes)
        end_purging(region, i * kSlotsPerHugePage + base::lowest_bit(slots), 1, false);
    }
  }
}

}  // namespace hummock::pages
