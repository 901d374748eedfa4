// Looking at all headers, and from an inner address to its span.
#include "pages/pages.h"
#include "pages/region.h"

namespace hummock::pages {

void visit_headers(void (*visit)(const SlabHeader*, void*), void* context) {
  for (Region* region = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); region != nullptr;
       region = region->next) {
    for (unsigned slot = 1; slot < region->huge_pages * kSlotsPerHugePage; ++slot) {
      visit(region->header(slot), context);
    }
  }
}

SlabHeader* Headers::next() {
  if (!begun_) region_ = __atomic_load_n(&regions, __ATOMIC_ACQUIRE);
  begun_ = true;
  while (region_ != nullptr && ++slot_ >= region_->huge_pages * kSlotsPerHugePage) {
    region_ = region_->next;
    slot_ = 0;
  }
  return region_ == nullptr ? nullptr : region_->header(slot_);
}

Extent enclosing_span(const void* p) {
  const SlabHeader* header = find_in_region(p);
  if (header == nullptr) return enclosing_huge(p);
  for (unsigned slots = 1; slot_of(header) != 0; ++slots, --header) {
    if (kind_of(header) == Kind::large && header->slots >= slots) return {header->start, header->bytes};
    if (kind_of(header) != Kind::free) return {};
  }
  return {};
}

}  // namespace hummock::pages
