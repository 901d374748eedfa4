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

// The calling thread's bin of a class is empty, or its list is broken.
void* allocate_slow(Bin* bin);
// The size is beyond the direct ones, or nothing may take the fast path: every size counts then.
void* allocate_medium(size_t size);
// The same for operator new, which recording tells from malloc.
void* allocate_medium_new(size_t size);

// kDirectSize once the options are read and no mode needs to see every call, else 0. One word for
// "is it small?" and "is it allowed?", so the second question costs nothing.
// Atomic, relaxed: a late reader takes the slow path.
// While blocks are sampled it is 0, too: it changes while threads run, and a late reader may find either.
extern base::OwnLine<size_t> fast_limit HUMMOCK_HIDDEN;
// The options are read, and no mode or hook wants every call (heap/attach.h). Atomic, relaxed, as above.
extern bool is_plain HUMMOCK_HIDDEN;

// The first block of a list of free blocks. Null: the list is empty, or what comes next is no free block, or
// its link was written to; nothing has changed then, and check_bin says which.
__attribute__((always_inline)) inline void* pop_list(void** list) {
  void* block = *list;
  uintptr_t& check = slab::check_word(block);
  uintptr_t& link = slab::link_word(block);
  uintptr_t next = check;
#if defined(__SANITIZE_THREAD__)
  if (relaxed(link) != next) return nullptr;
  link = 0;
#else
  // Compared and cleared in one instruction. The second word of a bin, where lists end, is put back. Threads
  // without a heap share theirs: it may be off by a few addresses for a moment, and allocate_slow puts it
  // right.
  link -= next;
#endif
  // Each `asm`: else the words are kept in registers, which costs an instruction or two on the usual path.
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
