#include "slab/slab.h"

#include "base/message.h"

namespace hummock::slab {
namespace {

constexpr size_t kCarveBytes = 8192;  // two pages: no memory is touched long before it is needed

// The sum of the weights of all carved blocks.
uint64_t sum_of_carved(const SlabHeader* slab) {
  const uint64_t carved = slab->carved;
  return carved * weight_of(slab->start) + carved * (carved - 1) / 2 * row_of(slab).block_size;
}

// The list has exactly `count` blocks, which add up to `sum`: a block that was freed twice makes a cycle
// or a short cut, an overwritten link leads elsewhere. Returns the last one.
void* check_list(const SlabHeader* slab, void* first, size_t count, uint64_t sum) {
  void* block = first;
  uint64_t seen = 0;
  void* last = nullptr;
  for (; count != 0 && stands_in(slab, block); --count, block = link_of(block)) {
    seen += weight_of(block);
    last = block;
  }
  if (count != 0 || last == nullptr || block != end_of(slab) || seen != sum) {
    corrupted(slab, "a freed block was written to or freed twice");
  }
  return last;
}

// What is in use is known by its sum: a number of blocks, and offsets that are multiples of their size.
// An inner or foreign pointer that was freed, and a block freed twice, leave another remainder.
size_t checked_used(const SlabHeader* slab) {
  const size_t used = slab->used();
  const uint64_t offsets = slab->live_sum - used * weight_of(slab->start);
  if (used > slab->carved) corrupted(slab, "a block was freed twice, or a pointer that is no block");
  if (static_cast<uint32_t>(offsets) % row_of(slab).block_size != 0 ||
      offsets >= used * slab->bytes + (used == 0)) {
    corrupted(slab, "a pointer that is not a block was freed");
  }
  return used;
}

// Only when no carved block is free: then all of them are in use after.
void* carve(SlabHeader* slab, void* end) {
  const SizeClass& row = row_of(slab);
  const size_t want = kCarveBytes / row.block_size != 0 ? kCarveBytes / row.block_size : 1;
  const size_t left = slab->capacity - slab->carved;
  const size_t count = want < left ? want : left;
  char* first = slab->start + size_t{slab->carved} * row.block_size;
  char* block = first;
  for (size_t i = 1; i < count; ++i, block += row.block_size) link_of(block) = block + row.block_size;
  link_of(block) = end;
  set_relaxed(slab->carved, static_cast<uint16_t>(slab->carved + count));
  slab->live_sum = sum_of_carved(slab);
  return first;
}

// What the owner freed. The list is checked.
void* take_freed(SlabHeader* slab, void* end) {
  void* first = slab->free;
  const uint64_t all = sum_of_carved(slab);
  void* last = check_list(slab, first, slab->carved - checked_used(slab), all - slab->live_sum);
  link_of(last) = end;
  slab->free = end_of(slab);
  slab->live_sum = all;
  return first;
}

}  // namespace

SlabHeader* create(unsigned size_class, Kind kind) {
  const SizeClass& row = kTable.row[size_class];
  SlabHeader* slab = pages::allocate_span(row.slots).header;
  if (slab == nullptr) return nullptr;
  slab->free = end_of(slab);
  slab->live_sum = 0;
  set_relaxed(slab->carved, uint16_t{0});
  slab->capacity = row.capacity;
  slab->size_class = static_cast<uint8_t>(size_class);
  slab->home_frees = slab->full = slab->listed = false;
  set_relaxed(slab->notify, uint32_t{row.capacity / 4u != 0 ? row.capacity / 4u : 1u});
  slab->kind = kind;
  slab->back = 0;
  for (unsigned i = 1; i < row.slots; ++i) {
    slab[i].back = static_cast<uint8_t>(i);
    slab[i].kind = Kind::interior;
  }
  return slab;
}

void destroy(SlabHeader* slab) {
  set_owner(slab, kNobody);
  for (unsigned i = 1; i < slab->slots; ++i) slab[i].kind = Kind::free;
  pages::release_span(slab);
}

void* take_blocks(SlabHeader* slab, void* end) {
  if (slab->free == end_of(slab) && count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED)) != 0) {
    drain(slab, take_remote(slab));
  }
  if (slab->free != end_of(slab)) return take_freed(slab, end);
  return slab->carved < slab->capacity ? carve(slab, end) : nullptr;
}

void drain(SlabHeader* slab, uint64_t word) {
  void* block = chain_of(word);
  for (uint32_t left = count_of(word); left != 0; --left) {
    if (!stands_in(slab, block) || (has_mark(slab) && static_cast<uintptr_t*>(block)[1] != mark_of(block))) {
      corrupted(slab, "a block that another thread freed was written to or freed twice");
    }
    void* next = link_of(block);
    put_block(slab, block);
    block = next;
  }
  if (block != nullptr) corrupted(slab, "a freed block was written to or freed twice");
  checked_used(slab);
}

Pushed push_remote(SlabHeader* slab, void* first, void* last, uint32_t count) {
  uint64_t old = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  for (;;) {
    link_of(last) = chain_of(old);
    const uint32_t now = count_of(old) + count;
    const uint64_t flags = old & (kQueued | kSharedBit);
    const bool queue = flags == 0 && now >= __atomic_load_n(&slab->notify, __ATOMIC_RELAXED);
    const uint64_t fresh = pack(first, now, queue ? kQueued : flags);
    // release: pairs with take_remote's acquire (the links). acquire: what the giver wrote before it
    // set the shared bit (owner, shared_live, notify) is seen by whoever finds the bit.
    if (__atomic_compare_exchange_n(&slab->remote, &old, fresh, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return {old, queue};
    }
  }
}

void check_empty(const SlabHeader* slab, void* chain, uint32_t count) {
  uint64_t sum = slab->live_sum;
  for (; count != 0 && chain != nullptr; --count, chain = link_of(chain)) sum -= weight_of(chain);
  if (count != 0 || chain != nullptr || sum != 0) {
    corrupted(slab, "a block was freed twice, or a pointer that is no block");
  }
}

void check_block(const SlabHeader* slab, const void* block, const char* call) {
  if (__builtin_expect(is_block(slab, block), true)) return;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(block) - slab->start);
  const SizeClass& row = row_of(slab);
  const size_t index = block_index(row, offset);
  base::Line line;
  line << call << "(" << block << "): ";
  if (index < relaxed(slab->carved)) {
    line << "points " << (offset - index * row.block_size) << " bytes into a block of " << row.block_size
         << " bytes at " << static_cast<const void*>(slab->start + index * row.block_size);
  } else {
    line << "points into a slab of " << row.block_size << "-byte blocks where no block was ever handed out";
  }
  base::die(line);
}

}  // namespace hummock::slab
