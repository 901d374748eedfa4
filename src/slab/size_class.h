// Size classes: one table, made at compile time, that everything about classes comes from.
#ifndef HUMMOCK_SLAB_SIZE_CLASS_H
#define HUMMOCK_SLAB_SIZE_CLASS_H

#include "base/bits.h"
#include "pages/slab_header.h"

namespace hummock::slab {

inline constexpr size_t kStep = 16;  // classes 1…16: 16, 32, …, 256
inline constexpr size_t kMaxStepped = 256;
inline constexpr unsigned kPerDoubling = 8;  // then 8 a doubling: at most 12.5 % over
inline constexpr size_t kMaxSmall = 64 << 10;
inline constexpr size_t kTinySize = 8;
inline constexpr unsigned kTiny = 1 + 16 + 8 * kPerDoubling;  // 8 bytes: for blocks cut to 8 or less
inline constexpr unsigned kClasses = kTiny + 1;               // class 0 is no class: size 0's empty bin

struct SizeClass {
  uint32_t block_size;
  uint16_t slots;       // of its slabs
  uint16_t capacity;    // blocks of a slab
  uint64_t reciprocal;  // ceil(2^40 / block_size)
};

// The class of a size 0…kMaxSmall.
constexpr unsigned class_of(size_t size) {
  if (size <= kMaxStepped) return static_cast<unsigned>((size + kStep - 1) / kStep);
  const size_t last = size - 1;
  const unsigned top = base::log2_floor(last);  // 8 for 257…512
  return 17 + (top - 8) * kPerDoubling + static_cast<unsigned>((last >> (top - 3)) & (kPerDoubling - 1));
}

constexpr size_t size_of(unsigned size_class) {
  if (size_class == kTiny) return kTinySize;
  if (size_class <= 16) return size_class * kStep;
  const unsigned doubling = (size_class - 17) / kPerDoubling;
  const unsigned step = (size_class - 17) % kPerDoubling;
  return (size_t{256} << doubling) + (size_t{32} << doubling) * (step + 1);
}

// Blocks above 8 KiB stand in the fewest slots of which at most a sixteenth is left over: a short slab is
// sooner empty, and then its memory is anybody's.
constexpr unsigned slots_for(size_t block) {
  unsigned slots = 1;
  while (block > kSlotSize / 8 && slots * kSlotSize % block * 16 > slots * kSlotSize) ++slots;
  return slots;
}

struct ClassTable {
  SizeClass row[kClasses];
};

constexpr ClassTable make_table() {
  ClassTable table = {};
  for (unsigned c = 1; c < kClasses; ++c) {
    const size_t block = size_of(c);
    const unsigned slots = slots_for(block);
    table.row[c] = {static_cast<uint32_t>(block), static_cast<uint16_t>(slots),
                    static_cast<uint16_t>(slots * kSlotSize / block),
                    ((uint64_t{1} << 40) + block - 1) / block};
  }
  return table;
}

constexpr unsigned most_slots() {
  unsigned most = 0;
  for (unsigned c = 1; c < kTiny; ++c) most = slots_for(size_of(c)) > most ? slots_for(size_of(c)) : most;
  return most;
}

inline constexpr ClassTable kTable = make_table();
static_assert(most_slots() <= 8);  // the tables of slabs, and block_index, count on it
static_assert(size_of(kTiny - 1) == kMaxSmall && class_of(kMaxSmall) == kTiny - 1);
static_assert(class_of(257) == 17 && size_of(17) == 288 && class_of(288) == 17 && class_of(289) == 18);

// Small blocks stand at multiples of their size, so that the sum of their addresses shows whether all of
// them are starts of blocks. Larger ones would lose too much at the start of their slab.
inline constexpr size_t kMaxAtMultiples = 1024;
constexpr bool stands_at_multiples(unsigned size_class) {
  return size_class <= class_of(kMaxAtMultiples);
}

// For those: a sum is a multiple of the block size when, divided by the power of two in it, it is one of what
// is odd in it; and the product of an odd number's multiple with its inverse modulo 2^64 is the quotient.
struct Divisor {
  uint64_t inverse;
  uint64_t most;   // the largest quotient
  unsigned power;  // of two
};
struct DivisorTable {
  Divisor row[class_of(kMaxAtMultiples) + 1];
};
constexpr DivisorTable make_divisors() {
  DivisorTable table = {};
  for (unsigned c = 1; stands_at_multiples(c); ++c) {
    uint64_t odd = size_of(c);
    unsigned power = 0;
    for (; odd % 2 == 0; odd /= 2) ++power;
    uint64_t inverse = odd;  // right in the last 3 bits; each step doubles them
    for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
    table.row[c] = {inverse, UINT64_MAX / size_of(c), power};
  }
  return table;
}
inline constexpr DivisorTable kDivisors = make_divisors();

// The sum is a multiple of the class's block size.
inline bool is_multiple(uint64_t sum, unsigned size_class) {
  const Divisor& divisor = kDivisors.row[size_class];
  const uint64_t product = sum * divisor.inverse;
  // Rotated: what is not divisible by the power of two becomes large.
  return (product >> divisor.power | product << (64 - divisor.power)) <= divisor.most;
}

inline const SizeClass& row_of(const SlabHeader* slab) {
  return kTable.row[slab->size_class];
}

// Number of the block at `offset` from the slab's start; exact for offsets below 512 KiB.
inline size_t block_index(const SizeClass& row, size_t offset) {
  return static_cast<size_t>((offset * row.reciprocal) >> 40);
}

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_SIZE_CLASS_H
