// The sizes that the documents name, from the code: a line "name bytes" for each. docs.py compares.
#include <stdio.h>

#include "heap/heap.h"
#include "heap/user.h"
#include "hummock/hummock.h"
#include "pages/region.h"
#include "pages/region_map.h"
#include "pages/slab_header.h"
#include "slab/size_class.h"

using namespace hummock;

int main() {
  const struct {
    const char* name;
    size_t value;
  } sizes[] = {
      {"region", kRegionSize},
      {"slot", kSlotSize},
      {"slots in a region", kRegionSize / kSlotSize},
      {"slots in a huge page", pages::kSlotsPerHugePage},
      {"slab header", sizeof(SlabHeader)},
      {"map entries", pages::kMapEntries},
      {"thread record", sizeof(heap::Heap)},
      {"remote entries", sizeof(heap::Heap::remote)},
      {"first-class heap record", sizeof(heap::UserHeap)},
      {"classes", HUMMOCK_CLASS_COUNT},
  };
  for (const auto& [name, value] : sizes) printf("%s: %zu\n", name, value);
}
