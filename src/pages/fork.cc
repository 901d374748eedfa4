// Pages set aside, and fork. All locks of this layer are held in these functions.
#include <string.h>

#include "os/os.h"
#include "pages/backing.h"
#include "pages/region.h"

namespace hummock::pages {
namespace {

char* giant_copies[kMostGiants];

// Free slots stay untouched in the copy, and take no memory there.
void copy_used(const Region* region, char* to) {
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    const HugePage& page = region->page[i];
    for (uint32_t left = page.used; left != 0; left &= left - 1) {
      const size_t at = i * kHugePageSize + static_cast<unsigned>(__builtin_ctz(left)) * kSlotSize;
      memcpy(to + at, region->base + at, kSlotSize);
    }
  }
}

// Which page of 1 GiB it stands in; giant_count if none.
unsigned giant_of(const char* p) {
  unsigned i = 0;
  while (i < giant_count && (p < giants[i] || p >= giants[i] + os::kGiantPage)) ++i;
  return i;
}

bool has_pinned(const Region* region) {
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    if (region->page[i].backing == Backing::pinned) return true;
  }
  return false;
}

size_t size_of(const Region* region) {
  return region->huge_pages * kHugePageSize;
}

void become_small(Region* region) {
  for (unsigned i = 0; i < region->huge_pages; ++i) {
    HugePage* page = &region->page[i];
    if (page->backing == Backing::pinned) set_backing(page, Backing::small);
  }
}

void take_copies() {
  bool moved[kMostGiants] = {};
  for (unsigned i = 0; i < giant_count; ++i) {
    char* copy = giant_copies[i];
    moved[i] = copy != nullptr && os::move_pages(copy, os::kGiantPage, os::kGiantPage, giants[i]);
    giant_copies[i] = nullptr;
  }
  for (Region* region = regions; region != nullptr; region = region->next) {
    const unsigned giant = giant_of(region->base);
    const bool small = giant < giant_count
                           ? moved[giant]
                           : region->copy != nullptr &&
                                 os::move_pages(region->copy, size_of(region), size_of(region), region->base);
    region->copy = nullptr;
    if (small) become_small(region);
  }
}

void make_copies() {
  // Null when the system has no room: the child then shares the pages as they are.
  for (unsigned i = 0; i < giant_count; ++i) giant_copies[i] = static_cast<char*>(os::map(os::kGiantPage));
  for (Region* region = regions; region != nullptr; region = region->next) {
    if (!has_pinned(region)) continue;
    const unsigned giant = giant_of(region->base);
    if (giant == giant_count) {
      region->copy = static_cast<char*>(os::map(size_of(region)));
      if (region->copy != nullptr) copy_used(region, region->copy);
    } else if (giant_copies[giant] != nullptr) {
      copy_used(region, giant_copies[giant] + (region->base - giants[giant]));
    }
  }
}

void drop_copies() {
  for (unsigned i = 0; i < giant_count; ++i) {
    if (giant_copies[i] != nullptr) os::unmap(giant_copies[i], os::kGiantPage);
    giant_copies[i] = nullptr;
  }
  for (Region* region = regions; region != nullptr; region = region->next) {
    if (region->copy != nullptr) os::unmap(region->copy, size_of(region));
    region->copy = nullptr;
  }
}

void begin_in_child() {
  take_copies();
  // The part that became no region yet: that of a giant page became small with the rest.
  if (reserve.backing == Backing::pinned && giant_count == 0) {
    if (reserve.left != 0) os::unmap(reserve.next, reserve.left);
    reserve.left = 0;
  }
  reserve.backing = reserve.backing == Backing::pinned ? Backing::small : reserve.backing;
  giant_count = 0;
  pinned_bytes = 0;
}

}  // namespace

void reserve_at_fork(os::ForkStep step) {
  if (step == os::ForkStep::before) reserve_lock.at_fork(step);
  switch (step) {
    case os::ForkStep::before:
      if (relaxed(pinned_bytes) != 0) make_copies();
      return;
    case os::ForkStep::in_parent:
      drop_copies();  // also where a handler of the program's has given all those pages back meanwhile
      break;
    case os::ForkStep::in_child:
      if (relaxed(pinned_bytes) != 0) begin_in_child();
      break;
  }
  reserve_lock.at_fork(step);
}

}  // namespace hummock::pages
