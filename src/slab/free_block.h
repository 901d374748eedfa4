// A free block holds its link, twice. A link is the next block of its list ^ a secret of the process.
//
// malloc follows a link only if both words agree, and clears the second. So any write to one of them shows. A
// write of one value to both leads to an address that nobody chose, mostly to none, which shows too. A list
// ends in its bin, which never looks like a free block.
//
// free sees at the call whether a block is already free, because the upper 16 bits of all links are the same.
// A program's block may have them where a link would be, by chance or because it is a copy of a free block.
// Such a block is searched for in the lists (heap/diagnose.h).
//
// A list of blocks that other threads freed (slab/remote.h) has `kRemote` in its first words and ends in
// null. So neither kind of list is taken for the other when two threads free one block at once.
//
// A block of 8 bytes has one word: the next block's number in the slab, mixed with the block's address and
// the secret. Anything else is not a free block. The numbers of the two kinds of lists differ, too.
#ifndef HUMMOCK_SLAB_FREE_BLOCK_H
#define HUMMOCK_SLAB_FREE_BLOCK_H

#include "base/own_line.h"
#include "os/thread.h"
#include "slab/size_class.h"

namespace hummock::slab {

// With 64 bits, its upper 16 and its lower 16 bits are the same, begin with 1, and are no part of an address.
// Written once, before the first block is handed out. Atomic, relaxed: a thread that sees it late finds an
// empty bin, and then the lock of initialise().
extern base::OwnLine<uintptr_t> secret_word HUMMOCK_HIDDEN;
__attribute__((always_inline)) inline uintptr_t secret() {
  return relaxed(secret_word.value);
}
void make_secret(uint64_t random);

inline constexpr bool kMarksLinks = sizeof(void*) == 8;  // by their upper bits
inline constexpr uintptr_t kRemote = 1;

inline uintptr_t& check_word(void* block) {
  return *static_cast<uintptr_t*>(block);  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn): not null
}
inline uintptr_t& link_word(void* block) {
  return static_cast<uintptr_t*>(block)[1];
}

inline uintptr_t link_to(const void* next) {
  return reinterpret_cast<uintptr_t>(next) ^ secret();
}
__attribute__((always_inline)) inline void set_link(void* block, uintptr_t link, uintptr_t kind = 0) {
  link_word(block) = link;
  asm("" ::: "memory");  // else both are put together in a vector, which takes longer
  check_word(block) = link ^ kind;
}
inline void set_next(void* block, const void* next) {
  set_link(block, link_to(next));
}
inline void set_next_remote(void* block, const void* next) {
  set_link(block, link_to(next), kRemote);
}

// The result for a broken link. No block is there.
inline void* const kNoLink = reinterpret_cast<void*>(uintptr_t{1});

// False for most values that no link decodes to.
__attribute__((always_inline)) inline bool leads_somewhere(uintptr_t next) {
  return !kMarksLinks || static_cast<intptr_t>(next) >= 0;
}
inline bool agree(void* block, uintptr_t link, uintptr_t kind) {
  return relaxed(check_word(block)) == (link ^ kind);
}
inline void* next_of(void* block, uintptr_t kind = 0) {
  const uintptr_t link = relaxed(link_word(block));
  return agree(block, link, kind) ? reinterpret_cast<void*>(link ^ secret()) : kNoLink;
}
// The next block in a list of blocks that other threads freed.
inline void* next_remote(void* block) {
  return next_of(block, kRemote);
}

// True for each check of a free block, and for few other words. A live block has the one that it had in its
// list until the program writes there.
__attribute__((always_inline)) inline bool is_like_check(uintptr_t check) {
  return kMarksLinks && static_cast<uint16_t>(uint64_t{check} >> 48) == static_cast<uint16_t>(secret());
}
// True for each link, and for few other words. With 32 bits it compares the check.
__attribute__((always_inline)) inline bool is_like_link(void* block, uintptr_t link) {
  if (!kMarksLinks) return agree(block, link, 0) || agree(block, link, kRemote);
  return is_like_check(link);
}
// Is it a free block? False: certainly not.
// acquire: an owner that purges a page closes the slab first, so who reads zeros sees free_bound at 0 after.
__attribute__((always_inline)) inline bool looks_free(void* block) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  // As above, in one instruction. NOLINTNEXTLINE(clang-analyzer-core.NullDereference): never null
  return static_cast<uint16_t*>(block)[7] == static_cast<uint16_t>(secret());
#else
  return is_like_link(block, __atomic_load_n(&link_word(block), __ATOMIC_ACQUIRE));
#endif
}

// ---- Blocks of 8 bytes ---------------------------------------------------------------------------

inline constexpr size_t kTinyEnd = kSlotSize / kTinySize;  // no block has this number: the end of the list
inline constexpr size_t kTinyRemote = kTinyEnd + 1;        // in remote lists numbers are so much higher

// A slab of them is one slot, so no header is needed to find a block's number, or a block near another one.
inline size_t tiny_number(const void* block) {
  return reinterpret_cast<uintptr_t>(block) % kSlotSize / kTinySize;
}
inline void* tiny_in_slab_of(const void* block, size_t number) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(block) & ~uintptr_t{kSlotSize - 1};
  return reinterpret_cast<void*>(start + number * kTinySize);
}

inline uint64_t tiny_mask(const void* block) {
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(block) ^ uint64_t{secret()}) * 0x9e3779b97f4a7c15u;
  return mixed ^ (mixed >> 32);
}
inline uint64_t& tiny_word(void* block) {
  return *static_cast<uint64_t*>(block);  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn): never null
}
// The number of the next block, or kTinyEnd; of either kind. If it is larger, the block is not free.
inline uint64_t tiny_next(void* block) {
  return relaxed(tiny_word(block)) ^ tiny_mask(block);
}
inline bool is_tiny_link(uint64_t number) {
  return number <= kTinyRemote + kTinyEnd;
}
inline void set_tiny_next(void* block, size_t number) {
  tiny_word(block) = tiny_mask(block) ^ number;
}

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_FREE_BLOCK_H
