// Arithmetic on powers of two.
#ifndef HUMMOCK_BASE_BITS_H
#define HUMMOCK_BASE_BITS_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::base {

constexpr bool is_power_of_two(size_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

// `align` is a power of two; the caller knows that n + align does not overflow.
constexpr uintptr_t align_up(uintptr_t n, size_t align) {
  return (n + align - 1) & ~(uintptr_t{align} - 1);
}
constexpr uintptr_t align_down(uintptr_t n, size_t align) {
  return n & ~(uintptr_t{align} - 1);
}

constexpr size_t divide_up(size_t n, size_t by) {
  return (n + by - 1) / by;
}

// Position of the highest set bit; n ≠ 0.
constexpr unsigned log2_floor(size_t n) {
  return 63u - static_cast<unsigned>(__builtin_clzll(n));
}

// The lowest `count` bits set, count 0…32.
constexpr uint32_t low_mask(unsigned count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

// Length of the longest run of set bits.
constexpr unsigned longest_run(uint32_t bits) {
  if (bits == ~uint32_t{0}) return 32;
  // Where runs of 2, 4, 8, 16 begin; then the length is put together from its largest power downwards.
  const uint32_t two = bits & (bits >> 1), four = two & (two >> 2), eight = four & (four >> 4);
  const uint32_t sixteen = eight & (eight >> 8);
  unsigned length = 0;
  uint32_t begins = ~uint32_t{0};
  const auto longer = [&](uint32_t runs, unsigned by) {
    const uint32_t still = begins & (runs >> length);
    if (still == 0) return;
    begins = still;
    length += by;
  };
  longer(sixteen, 16);
  longer(eight, 8);
  longer(four, 4);
  longer(two, 2);
  longer(bits, 1);
  return length;
}
static_assert(longest_run(0) == 0 && longest_run(0x0fe07) == 7 && longest_run(0xfffffffe) == 31);

// Number of set bits of `mask`, which has `most`, in `bits`: most often all or none.
constexpr unsigned count_in(uint32_t bits, uint32_t mask, unsigned most) {
  if ((bits & mask) == mask) return most;
  return (bits & mask) == 0 ? 0 : static_cast<unsigned>(__builtin_popcount(bits & mask));
}

// Bit i of the result is set when bits i … i + count - 1 of `bits` all are; count 1…32.
constexpr uint32_t runs_of(uint32_t bits, unsigned count) {
  unsigned have = 1;
  while (have < count) {
    const unsigned step = have < count - have ? have : count - have;
    bits &= bits >> step;
    have += step;
  }
  return bits;
}

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_BITS_H
