#include "pages/region_map.h"

#include "base/bits.h"

namespace hummock::pages {

RegionMap region_map;

namespace {

// Which 32 MiB each entry stands for: find_header's exact check. Atomic like the distances.
uint32_t region_number[kMapEntries];

unsigned entry_of(uintptr_t address) {
  return (address >> kRegionShift) % kMapEntries;
}

}  // namespace

SlabHeader* find_header(const void* p) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  const unsigned entry = entry_of(address);
  const uintptr_t number = __atomic_load_n(&region_number[entry], __ATOMIC_RELAXED);
  if (number == 0 || number != address >> kRegionShift) return nullptr;
  return header_of(p);
}

SlabHeader* find_slab(const void* p) {
  SlabHeader* header = find_header(p);
  return header != nullptr && header->kind == Kind::interior ? header - header->back : header;
}

bool enter_region(const void* base, SlabHeader* headers) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(base);
  const unsigned entry = entry_of(address);
  uint32_t none = 0;
  const uint32_t number = static_cast<uint32_t>(address >> kRegionShift);
  if (!__atomic_compare_exchange_n(&region_number[entry], &none, number, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    return false;
  }
  const intptr_t distance = reinterpret_cast<char*>(headers) - reinterpret_cast<char*>(region_map.dummy);
  __atomic_store_n(&region_map.distance[entry], distance, __ATOMIC_RELAXED);
  return true;
}

void remove_region(const void* base) {
  const unsigned entry = entry_of(reinterpret_cast<uintptr_t>(base));
  __atomic_store_n(&region_map.distance[entry], 0, __ATOMIC_RELAXED);
  __atomic_store_n(&region_number[entry], 0, __ATOMIC_RELAXED);
}

}  // namespace hummock::pages
