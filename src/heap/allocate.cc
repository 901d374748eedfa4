// malloc and its kin, beyond the first pop.
#include "heap/allocate.h"

#include <string.h>

#include "heap/attach.h"
#include "heap/block.h"
#include "heap/diagnose.h"
#include "heap/idle.h"
#include "heap/large.h"
#include "heap/limit_notice.h"
#include "heap/magazine.h"
#include "heap/modes.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "heap/tag.h"
#include "heap/user.h"
#include "os/os.h"

namespace hummock::heap {
namespace {

constexpr size_t kMediumStep = 128;
constexpr size_t kMediumSteps = (slab::kMaxSmall - kDirectSize) / kMediumStep;

// Where the bin of a size above kDirectSize is in a heap. Those classes end at multiples of the step.
struct MediumOffsets {
  uint16_t of[kMediumSteps];
};
constexpr MediumOffsets make_medium_offsets() {
  MediumOffsets table = {};
  for (size_t i = 0; i < kMediumSteps; ++i) {
    table.of[i] = static_cast<uint16_t>(slab::class_of(kDirectSize + (i + 1) * kMediumStep) * sizeof(Bin));
  }
  return table;
}
constexpr MediumOffsets kMediumOffsets = make_medium_offsets();
static_assert(slab::size_of(slab::class_of(kDirectSize + 1)) == kDirectSize + kMediumStep);

void* counted_block(size_t align, size_t size, bool zero);  // while blocks are sampled, or a moment after

// For the modes that see every call, and for samples.
void* special_block(size_t align, size_t size, bool zero) {
  return sees_every_call() ? modes::allocate(align, size, zero) : counted_block(align, size, zero);
}

// A small block of the class, or null + ENOMEM. Not for checked mode. Apart, so that the way past it saves no
// registers.
__attribute__((noinline)) void* small_block(unsigned size_class) {
  const bool again = thread_heap == &ended_heap && !os::exit_repeats();
  Heap* heap = attach();
  if (heap == nullptr) {
    UserHeap* common = common_heap();
    if (common == nullptr) return no_memory();
    return user_take(common, 0, slab::kTable.row[size_class].block_size, false);
  }
  void* block = pop_any(&heap->bins[size_class], size_class);
  if (block == nullptr) block = take_ready(heap, &heap->bins[size_class]);
  if (block == nullptr) {
    block = refill(heap, size_class);
    tell_if_limited();
  }
  if (again) end_thread();
  return block != nullptr ? block : no_memory();
}

// Apart, so that the way past it saves no registers. Returns the block.
__attribute__((noinline)) void* tick_in_turn(void* block) {
  if (tick_pending() || is_asked()) tick();
  tell_if_limited();
  return block;
}

__attribute__((noinline)) void* large_block(size_t size, size_t align, bool zero) {
  if (thread_heap == &empty_heap) attach();
  const bool in_span = size <= pages::kMaxSpanSlots * kSlotSize;
  const unsigned calls = size <= kMaxNear ? 1 : in_span ? kCallsPerTick / 4 : kCallsPerTick;
  const bool due = !thread_heap->attached || takes_turn(thread_heap, calls);
  if (due && tick_pending()) tick();
  bool zeroed;
  void* block = allocate_large(nullptr, size, align, &zeroed);
  if (block == nullptr) return no_memory();
  if (thread_heap->attached) count_drawn(thread_heap, base::align_up(size, kSlotSize), 1);
  if (zero && !zeroed) clear_large(pages::find_header(block));
  tell_if_limited();
  return block;
}

// The entry of the near cache led to a span of another length.
__attribute__((noinline)) void* past_entry(unsigned entry, SlabHeader* span, size_t size, bool zero) {
  pages::leave_entry(entry, span);
  return large_block(size, kSlotSize, zero);
}

// A block above the classes, for no first-class heap. What is not usual is a tail call, so that malloc saves
// no registers.
__attribute__((always_inline)) inline void* span_block(size_t size, bool zero) {
  Heap* heap = thread_heap;
  const bool near = size <= kMaxNear && heap->attached;
  if (__builtin_expect(!near, false)) return large_block(size, kSlotSize, zero);
  const auto slots = static_cast<unsigned>(base::divide_up(size, kSlotSize));
  const unsigned entry = near_entry(heap, slots);
  SlabHeader* span = pages::take_entry(entry);
  if (__builtin_expect(span == nullptr, false)) return large_block(size, kSlotSize, zero);
  if (__builtin_expect(span->slots != slots, false)) return past_entry(entry, span, size, zero);
  set_relaxed(span->kind, Kind::large);
  heap->drawn_blocks += 1;
  heap->reused_bytes += span->bytes;
  if (zero) memset(span->start, 0, span->bytes);
  return __builtin_expect(takes_turn(heap), false) ? tick_in_turn(span->start) : span->start;
}

// Apart, so that allocate_medium saves no registers.
__attribute__((noinline)) void* plain_span_block(size_t size) {
  return span_block(size, false);
}

__attribute__((noinline)) size_t usable_size_slow(const void* p) {
  if (p == nullptr) return 0;
  if (const size_t room = room_in_direct(pages::header_of(p), p)) return room;
  return sees_every_call() ? modes::usable_size(p) : find_block("malloc_usable_size", p).room;
}

// Apart, so that the way past it saves no registers.
__attribute__((noinline)) void* allocate_slower(Heap* heap, Bin* bin) {
  if (!heap->attached) {
    set_relaxed(bin->no_link, Bin().no_link);  // see pop_list
  } else if (is_direct(*bin)) {
    if (void* block = pop_direct(heap, bin)) return block;
  }
  // While a mode replaces the heap, only size 0 comes by here. Hooks may come at any moment, after the size
  // was looked at: who is here then gets a block of the class, untold.
  if (is_replaced()) return modes::allocate_plain(0);
  return small_block(static_cast<unsigned>(bin - heap->bins));
}

}  // namespace

// Not inlined, so that its callers save no registers.
__attribute__((noinline)) void* allocate_slow(Bin* bin) {
  Heap* heap = thread_heap;
  void* block = sees_every_call() ? nullptr : take_ready(heap, bin);
  return __builtin_expect(block != nullptr, true) ? block : allocate_slower(heap, bin);
}

namespace {

// As malloc without the modes: where it has counted the block, or need not.
void* plain_block(size_t size) {
  if (size <= slab::kMaxSmall) {
    Bin* bin =
        size <= kDirectSize ? bin_of_size(thread_heap, size) : &thread_heap->bins[slab::class_of(size)];
    void* block = pop(bin);
    return __builtin_expect(block != nullptr, true) ? block : allocate_slow(bin);
  }
  return plain_span_block(size);
}

// There are samples, and this block is none. False where a mode sees every call, and for threads without a
// heap.
__attribute__((always_inline)) inline bool is_unwatched(size_t size) {
  return !sees_every_call() && passes(thread_heap, size);
}

// malloc of what the modes see that see every call, and of sizes that are not direct while there are samples.
__attribute__((noinline)) void* watched_medium(size_t size) {
  if (sees_every_call()) return modes::allocate_plain(size);
  if (__builtin_expect(passes(thread_heap, size), true)) return plain_block(size);
  return counted_block(0, size, false);
}

// While there are samples: a few instructions more than the fast path. All but the usual is left by tail
// calls.
__attribute__((noinline)) void* watched_block(size_t size) {
  if (__builtin_expect(size > kDirectSize || sees_every_call(), false)) return watched_medium(size);
  Heap* heap = thread_heap;
  if (__builtin_expect(!passes(heap, size), false)) return counted_block(0, size, false);
  Bin* bin = bin_of_size(heap, size);
  void* block = pop(bin);
  return __builtin_expect(block != nullptr, true) ? block : allocate_slow(bin);
}

}  // namespace

void* allocate_medium(size_t size) {
  if (__builtin_expect(relaxed(fast_limit.value) == 0, false)) return watched_block(size);
  const size_t above = size - kDirectSize - 1;
  if (__builtin_expect(above < slab::kMaxSmall - kDirectSize, true)) {
    const size_t offset = kMediumOffsets.of[above / kMediumStep];
    Heap* heap = thread_heap;
    Bin* bin = reinterpret_cast<Bin*>(reinterpret_cast<char*>(heap) + offset);
    void* block = pop(bin);
    return __builtin_expect(block != nullptr, true) ? block : allocate_slow(bin);
  }
  // A late reader may come with a size that is small: span_block is for larger ones alone.
  if (__builtin_expect(size <= slab::kMaxSmall, false)) return watched_medium(size);
  return plain_span_block(size);
}

void* allocate_medium_new(size_t size) {
  return sees_every_call() ? modes::allocate_new(size) : allocate_medium(size);
}

namespace {

__attribute__((always_inline)) inline void* zeroed_block(size_t size) {
  if (size > slab::kMaxSmall) return span_block(size, true);
  const unsigned size_class = slab::class_of(size == 0 ? 1 : size);
  Bin* bin = &thread_heap->bins[size_class];
  void* block = pop(bin);
  if (block == nullptr) block = allocate_slow(bin);
  if (block == nullptr) return nullptr;
  return memset(block, 0, slab::kTable.row[size_class].block_size);
}

__attribute__((always_inline)) inline void* aligned_block(size_t align, size_t size) {
  if (align > slab::kStep) {
    if (size > size_t{PTRDIFF_MAX} - align) return no_memory();
    const size_t small = slab::aligned_size(align, size);
    if (small == 0) return large_block(size, align, false);
    size = small;
  }
  return plain_block(size);
}

// Allocates what a sampled block needs: from a slab as small_block does, or as a large block.
__attribute__((noinline)) void* sampled_block(size_t align, size_t size, bool zero) {
  const bool small = slab::aligned_size(align, size) != 0;
  void* block = small ? modes::sampling::allocate_small(align, size, zero) : nullptr;
  if (block != nullptr) return block;
  block = allocate_unseen(align, size, zero);
  if (block != nullptr && !small) modes::sampling::mark_large(block, size);
  return block;
}

__attribute__((noinline)) void* counted_block(size_t align, size_t size, bool zero) {
  const bool usual = passes(thread_heap, size) || !modes::sampling::is_due(size);
  if (__builtin_expect(!usual, false)) return sampled_block(align, size, zero);
  return allocate_unseen(align, size, zero);
}

}  // namespace

__attribute__((noinline)) void* allocate_unseen(size_t align, size_t size, bool zero) {
  return zero ? zeroed_block(size) : aligned_block(align, size);
}

void* allocate_zeroed(size_t size) {
  if (relaxed(fast_limit.value) == 0 && !is_unwatched(size)) return special_block(0, size, true);
  return zeroed_block(size);
}

void* allocate_aligned(size_t align, size_t size) {
  if (relaxed(fast_limit.value) == 0 && !is_unwatched(size)) return special_block(align, size, false);
  return aligned_block(align, size);
}

size_t usable_size(const void* p) {
  const size_t room = room_in_own(pages::header_of(p), p);
  return __builtin_expect(room != 0, true) ? room : usable_size_slow(p);
}

namespace {

// The room of a block, as who claims a size sees it: a guarded one has no more than it was asked with, but
// its owner may have asked for the good size.
size_t claimed_room(const char* call, const void* p, size_t size) {
  const Block block = find_block(call, p);
  const bool rounded = kind_of(block.header) == Kind::guarded && size > block.room;
  return rounded ? good_size(block.room) : block.room;
}

// `align` 0: none was claimed.
void release_claimed(const char* call, void* p, size_t align, size_t size) {
  if (p == nullptr) return;
  if (sees_every_call()) return modes::release_sized(call, p, align, size);
  check_sized(call, p, align, size);
  release(p);
}

// If p is a block at all, it has the size. Where it does not take the fast path its frees go to the slab's
// own list, as with most blocks of C++ containers that are destroyed, or it is another thread's.
bool is_of_size(const SlabHeader* slot, size_t size) {
  return kind_of(slot) == Kind::slab && slot->size_class == slab::class_of(size);
}

}  // namespace

void check_sized(const char* call, void* p, size_t align, size_t size) {
  const size_t own = room_in_own(pages::header_of(p), p);
  check_claim(call, p, own != 0 ? own : claimed_room(call, p, size), size, align);
}

void release_sized_slow(void* p, size_t size) {
  if (size > slab::kMaxSmall || sees_every_call()) return release_claimed("free_sized", p, 0, size);
  const Bin* expected = &thread_heap->bins[slab::class_of(size)];
  release_or(p, expected, [=](intptr_t distance) {
    SlabHeader* slot = pages::header_at(distance);
    is_of_size(slot, size) ? release_slow(p, slot) : release_claimed("free_sized", p, 0, size);
  });
}

void release_aligned_sized(void* p, size_t align, size_t size) {
  release_claimed("free_aligned_sized", p, align, size);
}

}  // namespace hummock::heap
