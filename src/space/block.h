// What stands before every block of a space, and inside a free one.
//
//   at - 8        at                                              at + size - 8
//   | header      | payload (used) …                             | next header
//   | header      | next | slot | …            | size (footer)   |              (free)
//
// `at`, the offset of the payload from the engine, is a multiple of 16 and names the block. All links are
// offsets, so the memory may be mapped at any address.
#ifndef HUMMOCK_SPACE_BLOCK_H
#define HUMMOCK_SPACE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::space {

inline constexpr uint64_t kHeader = 8;
inline constexpr uint64_t kGranule = 16;
inline constexpr uint64_t kLeastBlock = 32;  // header, two links, footer

// A header: flags 4 | size 36, a multiple of 16 | code of the alignment asked for 4 | seal 20.
inline constexpr uint64_t kFree = 1;       // also what an absorbed header is left with: a second free shows
inline constexpr uint64_t kPrevFree = 2;   // the block before is free; its size stands before this header
inline constexpr uint64_t kMoved = 4;      // no block: the header is `size` bytes before (slots.h)
inline constexpr uint64_t kFromCache = 8;  // live, and a cache took it from the pool
inline constexpr unsigned kSizeBits = 40;
inline constexpr uint64_t kSizeMask = ((uint64_t{1} << kSizeBits) - 1) & ~uint64_t{15};
inline constexpr uint64_t kMostBytes = uint64_t{1} << (kSizeBits - 1);  // of a space
inline constexpr uint64_t kAlignmentMask = uint64_t{15} << kSizeBits;
inline constexpr unsigned kSealShift = 44;

// Alignments from 32 to 256 KiB are 1 … 14, larger ones 14. 15: a block of the space's own records.
inline constexpr unsigned kMostAlignment = 14;
inline constexpr unsigned kOwnRecord = 15;

// A header at another offset has another seal, so an interior pointer hardly ever finds one; the lowest
// four bits are set, so zeros are none either.
inline uint64_t seal(uint64_t at) {
  return ~at << kSealShift;
}
inline bool is_sealed(uint64_t header, uint64_t at) {
  return (header ^ seal(at)) >> kSealShift == 0;
}
inline uint64_t size_in(uint64_t header) {
  return header & kSizeMask;
}
inline unsigned alignment_code(uint64_t header) {
  return static_cast<unsigned>(header >> kSizeBits) & 15;
}
// The alignment of a block of that code, whatever was asked for.
inline size_t alignment_of(unsigned code) {
  return kGranule << (code == kOwnRecord ? 0 : code);
}
inline uint64_t alignment_bits(size_t align) {
  const unsigned code = static_cast<unsigned>(__builtin_ctzll(align / kGranule));
  return uint64_t{code < kMostAlignment ? code : kMostAlignment} << kSizeBits;
}

// The block that holds a request. The caller knows that the sum does not overflow.
inline uint64_t block_size(size_t request) {
  const uint64_t size = (uint64_t{request} + kHeader + kGranule - 1) & ~(kGranule - 1);
  return size < kLeastBlock ? kLeastBlock : size;
}

// In spaces whose owner has a cache, blocks of longer requests are whole cache lines: then headers of blocks
// that lie side by side are as many lines apart each time, which the processor sees, and fetches the next
// ones.
inline constexpr uint64_t kLine = 64;
inline constexpr size_t kLeastInLines = 2048;  // of a request
inline uint64_t size_in_lines(size_t request) {
  return (uint64_t{request} + kHeader + kLine - 1) & ~(kLine - 1);
}
inline uint64_t resting_size(size_t request) {
  return request < kLeastInLines ? block_size(request) : size_in_lines(request);
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_BLOCK_H
