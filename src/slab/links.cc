// The links of free blocks: the process's secret, and those of blocks that other threads freed.
#include "slab/slab.h"

namespace hummock::slab {

base::OwnLine<uintptr_t> secret_word;

void make_secret(uint64_t random) {
  uint64_t word = random;
  if (kMarksLinks) {
    // Bits that are rare in a program's memory: no address, no small number, no text, no usual fraction.
    const uint64_t upper = 0xe080 | (random >> 48 & 0x0f7f);
    word = upper << 48 | (random & 0xffffffff0000) | upper;
  }
  set_relaxed(secret_word.value, static_cast<uintptr_t>(word));
}

void* next_remote_free(const SlabHeader* slab, void* block) {
  return is_tiny(slab) ? next_tiny(block, tiny_next(block) - kTinyRemote, nullptr) : next_remote(block);
}

bool mark_free(const SlabHeader* slab, void* block) {
  if (is_tiny(slab)) {
    const uint64_t mask = tiny_mask(block), last = mask ^ (kTinyRemote + kTinyEnd);
    return !is_tiny_link(__atomic_exchange_n(&tiny_word(block), last, __ATOMIC_RELAXED) ^ mask);
  }
  return !is_like_link(block, __atomic_exchange_n(&link_word(block), link_to(nullptr), __ATOMIC_RELAXED));
}

void link_remote_tiny(const SlabHeader* slab, void* block, const void* next) {
  const uint64_t mask = tiny_mask(block);
  const uint64_t link = kTinyRemote + (next == nullptr ? kTinyEnd : tiny_number(next));
  // An exchange: a store of the owner's comes before it, and shows here, or after it, and stays.
  const uint64_t before = __atomic_exchange_n(&tiny_word(block), mask ^ link, __ATOMIC_RELAXED) ^ mask;
  if (__builtin_expect(before - kTinyRemote > kTinyEnd, false)) double_free(slab, block, "free");
}

}  // namespace hummock::slab
