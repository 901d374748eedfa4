#include "pages/region_map.h"

#include "base/bits.h"

namespace hummock::pages {

RegionMap region_map;

namespace {

// Which 32 MiB each entry stands for: find_header's exact check. Atomic; written once, from 0.
uint32_t region_number[kMapEntries];

// Where blocks with mappings of their own begin: a bit for each 32 MiB of 48 bits of addresses, which is more
// than a kernel hands out unasked. Atomic. Untouched pages cost nothing.
constexpr uintptr_t kNumbers = uintptr_t{1} << ((sizeof(void*) == 8 ? 48 : 32) - kRegionShift);
uint64_t mapping_bits[kNumbers / 64];

unsigned entry_of(uintptr_t address) {
  return (address >> kRegionShift) % kMapEntries;
}

bool begins_mapping(uintptr_t address) {
  const uintptr_t number = address >> kRegionShift;
  if (address % kRegionSize != 0 || number >= kNumbers) return false;
  // acquire: pairs with enter_mapping, so that who guesses the address finds a header that is written.
  return (__atomic_load_n(&mapping_bits[number / 64], __ATOMIC_ACQUIRE) >> (number % 64) & 1) != 0;
}

}  // namespace

SlabHeader* find_header(const void* p) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  // acquire: pairs with enter_region, so that the distance is there, which is never another one.
  const uintptr_t number = __atomic_load_n(&region_number[entry_of(address)], __ATOMIC_ACQUIRE);
  if (number != 0 && number == address >> kRegionShift) return header_of(p);
  return begins_mapping(address) ? header_before(static_cast<char*>(const_cast<void*>(p))) : nullptr;
}

SlabHeader* find_slab(const void* p) {
  SlabHeader* header = find_header(p);
  return header != nullptr && header->kind == Kind::interior ? header - header->back : header;
}

bool enter_region(void* base) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(base);
  const unsigned entry = entry_of(address);
  intptr_t none = 0;
  const intptr_t distance = static_cast<char*>(base) - reinterpret_cast<char*>(region_map.dummy);
  // The distance is what the entry is won by: the number follows, and who reads the number has the distance.
  if (!__atomic_compare_exchange_n(&region_map.distance[entry], &none, distance, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    return false;
  }
  __atomic_store_n(&region_number[entry], static_cast<uint32_t>(address >> kRegionShift), __ATOMIC_RELEASE);
  return true;
}

bool may_stand(const void* base, size_t size) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(base);
  for (uintptr_t at = from; at < from + size; at += kRegionSize) {
    if (__atomic_load_n(&region_map.distance[entry_of(at)], __ATOMIC_RELAXED) != 0) return false;
  }
  return true;
}

bool enter_mapping(const void* start) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(start) >> kRegionShift;
  if (number >= kNumbers) return false;
  __atomic_fetch_or(&mapping_bits[number / 64], uint64_t{1} << (number % 64), __ATOMIC_RELEASE);
  return true;
}

void leave_mapping(const void* start) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(start) >> kRegionShift;
  __atomic_fetch_and(&mapping_bits[number / 64], ~(uint64_t{1} << (number % 64)), __ATOMIC_RELAXED);
}

}  // namespace hummock::pages
