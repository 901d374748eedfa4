// malloc: pop the thread's bin of the size's class.
#ifndef HUMMOCK_HEAP_ALLOCATE_H
#define HUMMOCK_HEAP_ALLOCATE_H

#include "base/own_line.h"
#include "heap/heap.h"

namespace hummock::heap {

// malloc finds the bins of sizes up to this in one step.
inline constexpr size_t kDirectSize = 1024;

// Where the bin of a size is in a heap. Size 0 counts as 1.
struct BinOffsets {
  uint16_t of[kDirectSize + 1];
};
constexpr BinOffsets make_bin_offsets() {
  BinOffsets table = {};
  for (size_t size = 0; size <= kDirectSize; ++size) {
    table.of[size] = static_cast<uint16_t>(slab::class_of(size == 0 ? 1 : size) * sizeof(Bin));
  }
  return table;
}
inline constexpr BinOffsets kBinOffsets = make_bin_offsets();
static_assert(offsetof(Heap, bins) == 0);

// For a bin of the calling thread that is empty, or whose list is broken.
void* allocate_slow(Bin* bin);
// For sizes above kDirectSize, and for every size while nothing may take the fast path.
void* allocate_medium(size_t size);
// The same for operator new, which recording tells from malloc.
void* allocate_medium_new(size_t size);

// kDirectSize once the options are read and no mode needs to see every call, else 0. One word answers "is it
// small?" and "may it take the fast path?", so the second question costs nothing. Atomic, relaxed: a late
// reader takes the slow path. It is also 0 while blocks are sampled: then it changes while threads run, and a
// late reader may find either value.
extern base::OwnLine<size_t> fast_limit HUMMOCK_HIDDEN;
// The options are read, and no mode or hook wants every call (heap/attach.h). Atomic, relaxed, as above.
extern bool is_plain HUMMOCK_HIDDEN;

// Takes the first block of a list of free blocks. Null: the list is empty, or the next block is not a free
// one, or its link was written to; then nothing has changed, and check_bin finds out which.
__attribute__((always_inline)) inline void* pop_list(void** list) {
  void* block = *list;
  uintptr_t& check = slab::check_word(block);
  uintptr_t& link = slab::link_word(block);
  uintptr_t next = check;
#if defined(__SANITIZE_THREAD__)
  if (relaxed(link) != next) return nullptr;
  link = 0;
#else
  // Compares and clears the word in one instruction. If this is a bin, where lists end, the word is restored.
  // Threads without a heap share one: its word may be wrong for a moment, and allocate_slow corrects it.
  link -= next;
#endif
  // Without the `asm`s the compiler keeps the words in registers, which costs instructions on the usual path.
  if (__builtin_expect(link != 0, false)) {
    asm("" : "+m"(link), "+m"(check));
    link += check;
    return nullptr;
  }
  next ^= slab::secret();
  if (__builtin_expect(!slab::leads_somewhere(next), false)) {
    asm("" : "+m"(link), "+m"(check));
    link = check;
    return nullptr;
  }
  *list = reinterpret_cast<void*>(next);
  return block;
}

__attribute__((always_inline)) inline void* pop(Bin* bin) {
  void* block = pop_list(&bin->blocks);
  if (__builtin_expect(block != nullptr, true)) ++bin->room;
  return block;
}

// Pops a block of any class.
void* pop_tiny(Bin* bin);
inline void* pop_any(Bin* bin, unsigned size_class) {
  return size_class != slab::kTiny ? pop(bin) : pop_tiny(bin);
}

// As allocate_zeroed and allocate_aligned, without the modes and samples. `align` 0: the usual one.
void* allocate_unseen(size_t align, size_t size, bool zero);
// As reallocate, likewise. Unless it may move, a block that does not fit is *copied: allocated and freed
// anew.
void* resize_unseen(void* p, size_t size, bool zero, bool may_move, bool* copied);

// A realloc that found no memory has left a block larger than it was asked to be. Atomic, relaxed.
extern bool some_stayed;

// Counts a block against the thread's next sample. True: it is not sampled. False for threads without a heap,
// which have no count.
__attribute__((always_inline)) inline bool passes(Heap* heap, size_t size) {
  const uint64_t until = relaxed(heap->until_sample);
  if (until <= size) return false;
  set_relaxed(heap->until_sample, until - size);
  return true;
}

// At most kDirectSize.
__attribute__((always_inline)) inline Bin* bin_of_size(Heap* heap, size_t size) {
  return reinterpret_cast<Bin*>(reinterpret_cast<char*>(heap) + kBinOffsets.of[size]);
}

template <void* (*otherwise)(size_t) = allocate_medium>
__attribute__((always_inline)) inline void* allocate(size_t size) {
  if (__builtin_expect(size > relaxed(fast_limit.value), false)) return otherwise(size);
  Bin* bin = bin_of_size(thread_heap, size);
  void* block = pop(bin);
  return __builtin_expect(block != nullptr, true) ? block : allocate_slow(bin);
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_ALLOCATE_H
