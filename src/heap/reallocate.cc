// realloc.
#include <string.h>

#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/large.h"
#include "heap/limit_notice.h"
#include "heap/modes.h"
#include "heap/release.h"
#include "heap/user.h"
#include "os/os.h"

namespace hummock::heap {

bool some_stayed;

namespace {

// In place while the block is at most a quarter larger than the request: shrinking gives memory back.
bool still_fits(size_t room, size_t size) {
  return size <= room && size >= room - room / 5;
}

void* zero_tail(void* p, size_t from) {
  const size_t room = usable_size(p);
  if (room > from) memset(static_cast<char*>(p) + from, 0, room - from);
  return p;
}

// A block that grows by a little will grow again: take as much room as still fits the size asked for.
size_t with_room_to_grow(size_t room, size_t size) {
  if (size <= room || size > room + room / 4 || size > slab::kMaxSmall * 4 / 5) return size;
  const size_t larger = slab::size_of(slab::class_of(size + size / 4 + 1) - 1);
  return larger > size ? larger : size;
}

// For what is moved. Programs that cut blocks down to next to nothing have many of them.
void* other_block(size_t size) {
  if (size > slab::kTinySize || sees_every_call()) return allocate(size);
  Bin* bin = &thread_heap->bins[slab::kTiny];
  void* block = pop_tiny(bin);
  return block != nullptr ? block : allocate_slow(bin);
}

// A page of a block that was never written reads as the kernel's one page of zeros, which is replaced when
// the block's next owner writes there: a second fault, and all processors of the process must forget the
// first page (9 µs with two). So pages are written before they are copied. Longer copies are of spans that
// may be mostly untouched, and stay so.
void copy(void* to, void* from, size_t size) {
  if (os::kSharesZeros && size <= slab::kMaxSmall) {
    // The page of the first byte has been written: the block's link was there.
    auto* page = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(from) | (kSmallPage - 1)) + 1);
    for (char* const end = static_cast<char*>(from) + size; page < end; page += kSmallPage)
      os::write_unchanged(page);
  }
  memcpy(to, from, size);
}

// Where nothing is to be had, a block that is to be smaller stays as it is.
void* stay(void* p) {
  set_relaxed(some_stayed, true);
  return p;
}

void* move(const Block& block, void* p, size_t size, bool zero) {
  void* fresh =
      block.heap != nullptr && !block.heap->samples ? user_allocate(block.heap, size) : other_block(size);
  if (fresh == nullptr && size <= block.room) return zero ? zero_tail(stay(p), size) : stay(p);
  if (fresh == nullptr) return nullptr;
  copy(fresh, p, block.room < size ? block.room : size);
  if (zero) zero_tail(fresh, block.room < size ? block.room : size);
  release(p);
  return fresh;
}

// The bin of with_room_to_grow's size, for sizes of which malloc finds it in one step.
inline Bin* bin_for_growth(Heap* heap, size_t room, size_t size) {
  size_t offset = kBinOffsets.of[size];
  if (size > room && size <= room + room / 4) {
    const size_t larger = kBinOffsets.of[size + size / 4 + 1] - sizeof(Bin);
    offset = larger > offset ? larger : offset;
  }
  return reinterpret_cast<Bin*>(reinterpret_cast<char*>(heap) + offset);
}

__attribute__((noinline)) void* move_own(void* p, size_t room, size_t size) {
  const size_t wanted = with_room_to_grow(room, size);
  void* fresh = other_block(wanted);
  if (fresh == nullptr) return size <= room ? stay(p) : nullptr;
  if (size <= slab::kTinySize) {
    memcpy(fresh, p, slab::kTinySize);  // no block is smaller
  } else {
    copy(fresh, p, room < size ? room : size);
  }
  release(p);  // its slab may have been given away meanwhile
  return fresh;
}

// Null: not to be had so, and the block is as it was.
void* resize_without_copy(const Block& block, void* p, size_t size, bool zero, bool may_move) {
  if (!still_fits(block.room, size)) {
    if (!block.is_large() || (zero && size > block.room)) return nullptr;
    const modes::sampling::Rest before = modes::sampling::begin_resize(block);
    p = resize_large(block.header, size, may_move);
    modes::sampling::end_resize(before, block, p, size);
  }
  return p != nullptr && zero ? zero_tail(p, size) : p;
}

void* resize(void* p, size_t size, bool zero) {
  if (sees_every_call()) return modes::reallocate(p, size, zero);
  const size_t room = zero ? 0 : room_in_direct(pages::header_of(p), p);
  if (room != 0 && still_fits(room, size)) return p;
  bool copied;
  void* resized = resize_unseen(p, size, zero, true, &copied);
  tell_if_limited();
  return resized;
}

}  // namespace

void* resize_unseen(void* p, size_t size, bool zero, bool may_move, bool* copied) {
  const Block block = find_block("realloc", p);
  void* resized = resize_without_copy(block, p, size, zero, may_move);
  *copied = resized == nullptr;
  if (resized == nullptr) resized = move(block, p, size, zero);
  if (resized == p) *copied = false;
  return resized;
}

void* reallocate(void* p, size_t size) {
  const SlabHeader* slot = pages::header_of(p);
  const size_t room = room_in_own(slot, p);
  const size_t limit = relaxed(fast_limit.value);
  if (room == 0 || __builtin_expect(limit == 0 && sees_every_call(), false)) return resize(p, size, false);
  if (still_fits(room, size)) return p;
  if (size < limit && size + size / 4 < limit && size > slab::kTinySize) {
    Heap* heap = thread_heap;
    if (void* fresh = pop(bin_for_growth(heap, room, size))) {
      memcpy(fresh, p, room < size ? room : size);
      release_near(slot->bin, p);
      return fresh;
    }
  }
  return move_own(p, room, size);
}

void* reallocate_zeroed(void* p, size_t size) {
  return resize(p, size, true);
}

}  // namespace hummock::heap
