#include "pages/region_map.h"

#include "base/bits.h"

namespace hummock::pages {

RegionMap region_map;

namespace {

// Which 32 MiB each entry stands for: find_header's exact check. Atomic; written once, from 0.
uint32_t region_number[kMapEntries];

// Where live blocks with mappings of their own begin: a bit for each 32 MiB of 48 bits of addresses, which is
// more than a kernel hands out unasked. Atomic. Untouched pages cost nothing.
constexpr uintptr_t kNumbers = uintptr_t{1} << ((sizeof(void*) == 8 ? 48 : 32) - kRegionShift);
uint64_t mapping_bits[kNumbers / 64];

unsigned entry_of(uintptr_t address) {
  return (address >> kRegionShift) % kMapEntries;
}

uintptr_t number_of(const void* start) {
  return reinterpret_cast<uintptr_t>(start) >> kRegionShift;
}

bool begins_mapping(const void* p) {
  if (!may_begin_mapping(p)) return false;
  const uintptr_t number = number_of(p);
  // acquire: pairs with enter_mapping, so that who guesses the address finds a header that is written.
  return (__atomic_load_n(&mapping_bits[number / 64], __ATOMIC_ACQUIRE) >> (number % 64) & 1) != 0;
}

}  // namespace

SlabHeader* find_in_region(const void* p) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  // acquire: pairs with enter_region, so that the distance is there, which is never another one.
  const uintptr_t number = __atomic_load_n(&region_number[entry_of(address)], __ATOMIC_ACQUIRE);
  return number != 0 && number == address >> kRegionShift ? header_of(p) : nullptr;
}

SlabHeader* find_mapping(const void* start) {
  return begins_mapping(start) ? header_before(start) : nullptr;
}

SlabHeader* find_header(const void* p) {
  SlabHeader* header = find_in_region(p);
  return header == nullptr ? find_mapping(p) : header;
}

SlabHeader* find_slab(const void* p) {
  SlabHeader* header = find_header(p);
  return header != nullptr && kind_of(header) == Kind::interior ? header - header->back : header;
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

bool may_begin_mapping(const void* start) {
  return reinterpret_cast<uintptr_t>(start) % kRegionSize == 0 && number_of(start) < kNumbers;
}

void enter_mapping(const void* start) {
  const uintptr_t number = number_of(start);
  __atomic_fetch_or(&mapping_bits[number / 64], uint64_t{1} << (number % 64), __ATOMIC_RELEASE);
}

// Relaxed: nobody else looks at the block's fields from here on, and who has its address got it after they
// were written.
bool leave_mapping(const void* start) {
  if (!may_begin_mapping(start)) return false;
  const uintptr_t number = number_of(start);
  const uint64_t bit = uint64_t{1} << (number % 64);
  return (__atomic_fetch_and(&mapping_bits[number / 64], ~bit, __ATOMIC_RELAXED) & bit) != 0;
}

}  // namespace hummock::pages
