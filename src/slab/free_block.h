// What stands in a free block: a link and a stamp, both made with a secret of the process.
//
//   first word   the next block of its list, plus `stamp`
//   second word  `stamp`
//
// Handing out clears the stamp. So free sees at the call whether a block is free already, and malloc whether
// the next block of a list is what it was: who writes to a freed block cannot make malloc return an address
// of his choice unless he knows the secret. A list ends in the bin that its blocks are for, whose second word
// is never the stamp.
//
// A list of blocks that other threads freed (slab/remote.h) has `kRemote` in its links and ends in null. So
// neither kind of list is taken for the other when two threads free one block at once.
//
// Blocks of 8 bytes have room for one word: the next block's number in the slab, mixed with the block's
// address and the secret. What is no such number is no free block.
#ifndef HUMMOCK_SLAB_FREE_BLOCK_H
#define HUMMOCK_SLAB_FREE_BLOCK_H

#include "os/thread.h"
#include "slab/size_class.h"

namespace hummock::slab {

// key + stamp = 0. Atomic, relaxed: written before fast_limit lets any thread look; who sees it late finds an
// empty bin, and then the lock of initialise(). The key is a large negative number: with 64 bits, key plus an
// address is negative, and so is key plus whatever programs write most (pointers, small numbers of either
// sign). So a link that was written to shows by its sign. Written once, before the first block is handed out.
struct Secret {
  uintptr_t key;
  uintptr_t stamp;
};
extern Secret secret HUMMOCK_HIDDEN;
__attribute__((always_inline)) inline uintptr_t key() {
  return relaxed(secret.key);
}
__attribute__((always_inline)) inline uintptr_t stamp() {
  return relaxed(secret.stamp);
}
void make_secret(uint64_t random);

inline constexpr uintptr_t kRemote = sizeof(void*) == 8 ? uintptr_t{1} << (sizeof(void*) * 8 - 1) : 1;

inline uintptr_t& link_word(void* block) {
  return *static_cast<uintptr_t*>(block);
}
inline uintptr_t& stamp_word(void* block) {
  return static_cast<uintptr_t*>(block)[1];
}

// False for what no link decodes to.
inline bool is_link(uintptr_t link) {
  return sizeof(void*) < 8 || static_cast<intptr_t>(link) >= 0;
}

inline uintptr_t next_of(void* block) {
  return link_word(block) + key();
}
inline void set_next(void* block, const void* next) {
  link_word(block) = reinterpret_cast<uintptr_t>(next) + stamp();
}

// Of blocks that other threads freed.
inline uintptr_t next_remote(void* block) {
  return (link_word(block) ^ kRemote) + key();
}
inline void set_next_remote(void* block, const void* next) {
  link_word(block) = (reinterpret_cast<uintptr_t>(next) + stamp()) ^ kRemote;
}

inline bool is_stamped(void* block) {
  return relaxed(stamp_word(block)) == stamp();
}

// ---- Blocks of 8 bytes ---------------------------------------------------------------------------

inline constexpr size_t kTinyEnd = kSlotSize / kTinySize;  // no block's number: the list's end

inline uint64_t tiny_mask(const void* block) {
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(block) ^ uint64_t{key()}) * 0x9e3779b97f4a7c15u;
  return mixed ^ (mixed >> 32);
}
inline uint64_t& tiny_word(void* block) {
  return *static_cast<uint64_t*>(block);
}
// The number of the next block, or kTinyEnd; larger: the block is not free.
inline uint64_t tiny_next(void* block) {
  return relaxed(tiny_word(block)) ^ tiny_mask(block);
}
inline void set_tiny_next(void* block, size_t number) {
  tiny_word(block) = tiny_mask(block) ^ number;
}

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_FREE_BLOCK_H
