// What stands before every block of a space, and inside a free one.
//
//   at            at + 8                                          at + size
//   | header      | payload (used) …                             | next header
//   | header      | next | slot | …            | size (footer)   |              (free)
//
// `at` is an offset from the engine, 8 more than a multiple of 16, so payloads are aligned to 16 whatever
// address the space is mapped at. All links are offsets.
#ifndef HUMMOCK_SPACE_BLOCK_H
#define HUMMOCK_SPACE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::space {

// A header: flags 4 | size 38, a multiple of 16 | log2 of the alignment asked for 5 | 0 | seal 16.
inline constexpr uint64_t kFree = 1;       // also what an absorbed header is left with: a second free shows
inline constexpr uint64_t kPrevFree = 2;   // the block before is free; its size stands before this header
inline constexpr uint64_t kMoved = 4;      // no block: the header is `size` bytes before (slots.h)
inline constexpr uint64_t kFromCache = 8;  // live, and a cache took it from the pool
inline constexpr unsigned kSizeBits = 42;
inline constexpr uint64_t kSizeMask = ((uint64_t{1} << kSizeBits) - 1) & ~uint64_t{15};
inline constexpr unsigned kSealShift = 48;

inline constexpr unsigned kMostAlignment = 30;
// In the place of the alignment: a block of the space's own records.
inline constexpr unsigned kOwnRecord = 31;

inline constexpr uint64_t kHeader = 8;
inline constexpr uint64_t kGranule = 16;
inline constexpr uint64_t kLeastBlock = 32;  // header, two links, footer
inline constexpr uint64_t kMostBytes = uint64_t{1} << (kSizeBits - 1);

// A header at another offset has another seal, so an interior pointer hardly ever finds one.
inline constexpr uint64_t kSealMix = 0x5A3C'6D98;
inline uint64_t seal(uint64_t at) {
  return (at ^ kSealMix) << (kSealShift - 4);
}
static_assert(kSealMix % 16 == 8, "as every offset of a header: so they leave no bit below the seal");
inline uint64_t size_in(uint64_t header) {
  return header & kSizeMask;
}
inline unsigned alignment_in(uint64_t header) {
  return static_cast<unsigned>(header >> kSizeBits) & 31;
}
inline uint64_t alignment_bits(size_t align) {
  const unsigned log = static_cast<unsigned>(__builtin_ctzll(align));
  return static_cast<uint64_t>(log < kMostAlignment ? log : kMostAlignment) << kSizeBits;
}

// The block that holds a request. The caller knows that the sum does not overflow.
inline uint64_t block_size(size_t request) {
  const uint64_t size = (uint64_t{request} + kHeader + kGranule - 1) & ~(kGranule - 1);
  return size < kLeastBlock ? kLeastBlock : size;
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_BLOCK_H
