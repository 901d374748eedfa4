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

// Position of the lowest set bit; bits ≠ 0.
constexpr unsigned lowest_bit(uint32_t bits) {
  return static_cast<unsigned>(__builtin_ctz(bits));
}

// The lowest `count` bits set, count 0…32.
constexpr uint32_t low_mask(unsigned count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

// Number of set bits; what the compiler offers is a call where the processor may have no instruction for it.
constexpr unsigned count_bits(uint32_t bits) {
  bits -= bits >> 1 & 0x55555555;
  bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
  return ((bits + (bits >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}
static_assert(count_bits(0xffffffff) == 32 && count_bits(0x80010300) == 4 && count_bits(0) == 0);

// Number of set bits of `mask`, which has `most`, in `bits`: most often all or none.
constexpr unsigned count_in(uint32_t bits, uint32_t mask, unsigned most) {
  if ((bits & mask) == mask) return most;
  return (bits & mask) == 0 ? 0 : count_bits(bits & mask);
}

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_BITS_H
