// From an address to its slot's header, without a branch and without touching a foreign address.
//
// The map has an entry for each 32 MiB of address space modulo 2 TiB. An entry is the distance from the
// dummy headers below to the 512 headers of that region; no region: distance 0, so that a foreign
// address (null too) finds a dummy header, whose owner matches no heap. A region whose entry is taken
// by another one (2 TiB apart) is not used; the exact check is find_header's.
#ifndef HUMMOCK_PAGES_REGION_MAP_H
#define HUMMOCK_PAGES_REGION_MAP_H

#include "pages/slab_header.h"

namespace hummock::pages {

// 2 TiB, or all there is of a 32-bit address space.
inline constexpr unsigned kMapEntries = sizeof(void*) == 8 ? 65536 : 128;

struct RegionMap {
  intptr_t distance[kMapEntries];     // atomic, relaxed: a block's address reaches a thread only
                                      // after its region's entry was written
  SlabHeader dummy[kSlotsPerRegion];  // zero for ever
};
extern RegionMap region_map;  // bss: untouched pages cost nothing

// Bytes from the dummy headers to the header for any address.
__attribute__((always_inline)) inline intptr_t distance_of(const void* p) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(p) >> 9;
  const uintptr_t slot = a & 0xff80;  // slot number × sizeof(SlabHeader)
  const uint32_t entry = static_cast<uint32_t>(a) >> 16;
  return relaxed(region_map.distance[entry]) + static_cast<intptr_t>(slot);
}

__attribute__((always_inline)) inline SlabHeader* header_at(intptr_t distance) {
  return reinterpret_cast<SlabHeader*>(reinterpret_cast<char*>(region_map.dummy) + distance);
}

// The header for any address; a dummy for one that is not ours. Exact modulo 2 TiB.
inline SlabHeader* header_of(const void* p) {
  return header_at(distance_of(p));
}

// The header for an address that is exactly ours, else null. `*base`, if wanted, is the region's start.
SlabHeader* find_header(const void* p);
// The same, but from a slab's later slots the slab's own.
SlabHeader* find_slab(const void* p);

// Enters or removes 512 headers for the 32 MiB at `base`. enter is false when the entry is taken.
bool enter_region(const void* base, SlabHeader* headers);
void remove_region(const void* base);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGION_MAP_H
