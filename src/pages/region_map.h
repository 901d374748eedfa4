// From an address to its slot's header, without a branch and without touching a foreign address.
//
// The map has an entry for each 32 MiB of address space modulo 2 TiB. An entry is the distance from the dummy
// headers below to the 512 headers of that region. Without a region it is 0, so a foreign address (null too)
// finds a dummy header, whose owner matches no heap. Addresses 2 TiB apart share an entry, so a region is
// only placed where its entry is free. Entries are never removed, as a region's headers are never unmapped.
//
// A block with a mapping of its own needs no entry. It begins at a multiple of 32 MiB; one bit for each
// multiple says where a live one begins, and its header is just before it. In the table its address is
// foreign, or slot 0 of a region a multiple of 2 TiB away, whose header has no owner. So the fast path leaves
// it to find_header, which is exact.
#ifndef HUMMOCK_PAGES_REGION_MAP_H
#define HUMMOCK_PAGES_REGION_MAP_H

#include "pages/slab_header.h"

namespace hummock::pages {

// 2 TiB, or all there is of a 32-bit address space.
inline constexpr unsigned kMapEntries = sizeof(void*) == 8 ? 65536 : 128;

struct RegionMap {
  intptr_t distance[kMapEntries];     // atomic, relaxed: written once, before a thread can have a
                                      // block's address
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

// The header for an address that is exactly ours, else null. The first: for any address in a region. The
// second: also for the start of a block with a mapping of its own.
SlabHeader* find_in_region(const void* p);
SlabHeader* find_header(const void* p);
// As find_header, but for a slab's later slots it returns the slab's own header.
SlabHeader* find_slab(const void* p);

// Enters the region at `base`, for ever. False: the entry is taken.
bool enter_region(void* base);
// Are the entries of `size` bytes at `base` free?
bool may_stand(const void* base, size_t size);

// Can a block with a mapping of its own begin at `start`? Do the bits cover it?
bool may_begin_mapping(const void* start);
// The header of the live one that begins there, or null.
SlabHeader* find_mapping(const void* start);
// From now on a live one begins there.
void enter_mapping(const void* start);
// Claims it for the caller, who frees, resizes or moves it. False: none begins there. No other thread may
// look at its header from now on, because the header goes with the mapping.
bool leave_mapping(const void* start);

// The header of such a block.
inline SlabHeader* header_before(const void* start) {
  return reinterpret_cast<SlabHeader*>(static_cast<char*>(const_cast<void*>(start)) - kSlotSize);
}

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGION_MAP_H
