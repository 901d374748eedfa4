// The word through which other threads give blocks back to a slab.
//
//   bit  0      gone: blocks of the pages in gone.remote count too, and stand in no chain
//   bits 1…2    turn: another value each time that gone.remote changed while bit 0 was set
//   bits 3…47   first block of a chain (0: none)
//   bits 48…61  how many blocks; a slab has at most 8192
//   bit  62     queued: somebody will dequeue or look at this header, and clear the bit
//   bit  63     shared: nobody owns the slab; its shard decides
//
// All events follow from the value that a compare-and-swap replaced, so each has exactly one author.
// The states and the proof are in docs/protocols.md.
#ifndef HUMMOCK_SLAB_REMOTE_H
#define HUMMOCK_SLAB_REMOTE_H

#include "pages/slab_header.h"

namespace hummock::slab {

inline constexpr unsigned kCountShift = 48;
inline constexpr uint64_t kGone = 1;
inline constexpr uint64_t kTurn = 6, kNextTurn = 2;
inline constexpr uint64_t kGoneBits = kGone | kTurn;
inline constexpr uint64_t kPointerMask = (uint64_t{1} << kCountShift) - 8;
inline constexpr uint64_t kCountMask = 0x3fff;
inline constexpr uint64_t kQueued = uint64_t{1} << 62;
inline constexpr uint64_t kSharedBit = uint64_t{1} << 63;

inline void* chain_of(uint64_t word) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(word & kPointerMask));
}
inline uint32_t count_of(uint64_t word) {
  return static_cast<uint32_t>((word >> kCountShift) & kCountMask);
}
inline uint64_t pack(const void* chain, uint32_t count, uint64_t flags) {
  return reinterpret_cast<uintptr_t>(chain) | (uint64_t{count} << kCountShift) | flags;
}

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_REMOTE_H
