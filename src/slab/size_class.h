// Size classes: one table, made at compile time, has everything about them.
#ifndef HUMMOCK_SLAB_SIZE_CLASS_H
#define HUMMOCK_SLAB_SIZE_CLASS_H

#include "base/bits.h"
#include "pages/slab_header.h"

namespace hummock::slab {

inline constexpr size_t kStep = 16;  // classes 1…16: 16, 32, …, 256
inline constexpr size_t kMaxStepped = 256;
inline constexpr unsigned kPerDoubling = 8;  // then 8 for each doubling: at most 12.5 % more than asked for
inline constexpr size_t kMaxSmall = 64 << 10;
inline constexpr size_t kTinySize = 8;
inline constexpr unsigned kTiny = 1 + 16 + 8 * kPerDoubling;  // 8 bytes: for blocks cut to 8 or less
inline constexpr unsigned kClasses = kTiny + 1;               // class 0 is no class: size 0's empty bin

struct SizeClass {
  uint32_t block_size;
  uint8_t slots;        // of its slabs
  uint8_t taken;        // blocks that a refill takes at once
  uint16_t capacity;    // blocks of a slab
  uint64_t reciprocal;  // ceil(2^40 / block_size)
  // An address × multiplier, modulo 2^64, is (address / block_size) × step for multiples of block_size, and
  // larger than that for all other addresses.
  uint64_t multiplier;
  uint64_t step;
};

// The class of a size 0…kMaxSmall.
constexpr unsigned class_of(size_t size) {
  if (size <= kMaxStepped) return static_cast<unsigned>((size + kStep - 1) / kStep);
  const size_t last = size - 1;
  const unsigned top = base::log2_floor(last);  // 8 for 257…512
  return 17 + (top - 8) * kPerDoubling + static_cast<unsigned>((last >> (top - 3)) & (kPerDoubling - 1));
}

// The size whose class is the first that holds `size` bytes and has only blocks aligned to `align`, 0 or a
// power of two; 0: none. It is the next multiple: where the steps between classes are multiples of `align`,
// its class is that of `size`; where they are smaller, it is a class's size itself.
constexpr size_t aligned_size(size_t align, size_t size) {
  if (align > kMaxSmall || size > kMaxSmall) return 0;
  const size_t next = base::align_up(size == 0 ? 1 : size, align < kStep ? kStep : align);
  return next <= kMaxSmall ? next : 0;
}

constexpr size_t size_of(unsigned size_class) {
  if (size_class == kTiny) return kTinySize;
  if (size_class <= 16) return size_class * kStep;
  const unsigned doubling = (size_class - 17) / kPerDoubling;
  const unsigned step = (size_class - 17) % kPerDoubling;
  return (size_t{256} << doubling) + (size_t{32} << doubling) * (step + 1);
}

// A slab of blocks above 8 KiB has the fewest slots that leave at most a sixteenth unused: a short slab is
// empty sooner, and then its memory can serve anything.
constexpr unsigned slots_for(size_t block) {
  unsigned slots = 1;
  while (block > kSlotSize / 8 && slots * kSlotSize % block * 16 > slots * kSlotSize) ++slots;
  return slots;
}

// Blocks of up to 8 KiB are at multiples of their size; larger ones would lose too much at the start of their
// slab. So one multiplication tells whether an address is a block's start, as in Lemire's test of
// divisibility: multiplier = 2^64 / block_size, rounded up to an odd number, and multiplier × block_size =
// 2^64 + step. Let an address be q × block_size + r. Its product is q × step for r = 0, and otherwise
// q × step + r × multiplier, where r × multiplier lies between 2^64 / block_size and 2^64 - 2^64 /
// block_size. q × step is less than 2^64 / block_size, since address × step < 2^64: step < 2 × block_size ≤
// 2^14, and addresses have 48 bits. So no sum wraps.
inline constexpr size_t kMaxAtMultiples = 8 << 10;
constexpr bool stands_at_multiples(const SizeClass& row) {
  return row.block_size <= kMaxAtMultiples;
}
//
// An odd multiplier (then step is less than twice the block size) also catches addresses with wrong high
// bits: a change of bit 47 or above changes the product by more than all products of blocks. But for powers
// of two, an address 2^41 … 2^46 lower passes, where the region map finds the same header. So regions are
// below 2^41 if possible, and there is no such lower address.
constexpr uint64_t multiplier_of(size_t block_size) {
  return (UINT64_MAX / block_size + 1) | 1;
}

struct ClassTable {
  SizeClass row[kClasses];
};

// A refill takes so many bytes of a slab's free blocks, but no more blocks than this, and at least one.
inline constexpr size_t kBytesTaken = 16 << 10;
inline constexpr size_t kMostTaken = 128;
constexpr size_t taken_of(size_t block) {
  const size_t blocks = kBytesTaken / block;
  return blocks < 1 ? 1 : blocks > kMostTaken ? kMostTaken : blocks;
}

constexpr ClassTable make_table() {
  ClassTable table = {};
  for (unsigned c = 1; c < kClasses; ++c) {
    const size_t block = size_of(c);
    const unsigned slots = slots_for(block);
    table.row[c] = {static_cast<uint32_t>(block),
                    static_cast<uint8_t>(slots),
                    static_cast<uint8_t>(taken_of(block)),
                    static_cast<uint16_t>(slots * kSlotSize / block),
                    ((uint64_t{1} << 40) + block - 1) / block,
                    multiplier_of(block),
                    multiplier_of(block) * block};
  }
  return table;
}

constexpr unsigned most_slots() {
  unsigned most = 0;
  for (unsigned c = 1; c < kTiny; ++c) most = slots_for(size_of(c)) > most ? slots_for(size_of(c)) : most;
  return most;
}

inline constexpr ClassTable kTable = make_table();
static_assert(most_slots() <= 8);  // slabs and block_index rely on it
static_assert(kTable.row[kTiny].slots == 1 && kSlotSize % kTinySize == 0);  // see free_block.h
static_assert(size_of(kTiny - 1) == kMaxSmall && class_of(kMaxSmall) == kTiny - 1);
static_assert(kTable.row[1].step == 16 && kTable.row[3].step <= 96);
static_assert(class_of(257) == 17 && size_of(17) == 288 && class_of(288) == 17 && class_of(289) == 18);

inline uint64_t product_of(const SizeClass& row, const void* p) {
  return reinterpret_cast<uintptr_t>(p) * row.multiplier;
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
