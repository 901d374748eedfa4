#include "slab/slab.h"

#include "base/message.h"

namespace hummock::slab {
namespace {

constexpr size_t kCarveBytes = 4096;  // one page: no memory is touched long before it is needed

// Free blocks in the list: what was carved and is not in use.
uint32_t listed_blocks(const SlabHeader* slab) {
  const uint32_t used = slab->used();
  if (used > slab->carved) corrupted(slab, "more blocks were freed than were handed out");
  return slab->carved - used;
}

// The list has exactly `count` links. A block that was freed twice makes a cycle or a short cut.
void check_length(const SlabHeader* slab, void* first, uint32_t count) {
  void* block = first;
  uint32_t left = count;
  for (; left >= 8 && block != nullptr; left -= 8) {
    // Eight links at a time: a short list ends in null, which the count of the last lap shows.
    for (int i = 0; i < 7; ++i) {
      block = link_of(block);
      if (__builtin_expect(block == nullptr, false)) corrupted(slab, "a freed block was written to or freed twice");
    }
    block = link_of(block);
  }
  for (; left != 0 && block != nullptr; --left) block = link_of(block);
  if (left != 0 || block != nullptr) corrupted(slab, "a freed block was written to or freed twice");
}

// The sum of the freed addresses is that of `count` blocks: an inner or foreign pointer shows.
void check_sum(const SlabHeader* slab, uint32_t count) {
  const uint64_t offsets = slab->sum - count * reinterpret_cast<uintptr_t>(slab->start);
  const SizeClass& row = row_of(slab);
  const bool inside = offsets <= uint64_t{count} * row.slots * kSlotSize;
  if (!inside || offsets % row.block_size != 0) corrupted(slab, "a pointer that is not a block was freed");
}

void* take_freed(SlabHeader* slab) {
  void* first = slab->free;
  const uint32_t count = listed_blocks(slab);
  check_length(slab, first, count);
  check_sum(slab, count);
  slab->free = nullptr;
  slab->sum = 0;
  slab->countdown += count;
  return first;
}

void* carve(SlabHeader* slab) {
  const SizeClass& row = row_of(slab);
  const size_t want = kCarveBytes / row.block_size != 0 ? kCarveBytes / row.block_size : 1;
  const size_t left = slab->capacity - slab->carved;
  const uint32_t count = static_cast<uint32_t>(want < left ? want : left);
  char* first = slab->start + size_t{slab->carved} * row.block_size;
  char* block = first;
  for (uint32_t i = 1; i < count; ++i, block += row.block_size) link_of(block) = block + row.block_size;
  link_of(block) = nullptr;
  slab->carved = static_cast<uint16_t>(slab->carved + count);
  slab->countdown += count;
  return first;
}

}  // namespace

SlabHeader* create(unsigned size_class, Kind kind) {
  const SizeClass& row = kTable.row[size_class];
  SlabHeader* slab = pages::allocate_span(row.slots).header;
  if (slab == nullptr) return nullptr;
  slab->free = nullptr;
  slab->sum = 0;
  slab->countdown = slab->rest = 0;
  slab->carved = 0;
  slab->capacity = row.capacity;
  slab->size_class = static_cast<uint8_t>(size_class);
  slab->home_frees = slab->full = slab->listed = false;
  slab->notify = row.capacity / 4 != 0 ? row.capacity / 4 : 1;
  slab->kind = kind;
  for (unsigned i = 1; i < row.slots; ++i) {
    slab[i].back = static_cast<uint8_t>(i);
    slab[i].kind = Kind::interior;
  }
  return slab;
}

void destroy(SlabHeader* slab) {
  for (unsigned i = 1; i < slab->slots; ++i) slab[i].kind = Kind::free;
  pages::release_span(slab);
}

void* take_blocks(SlabHeader* slab) {
  if (slab->free != nullptr) return take_freed(slab);
  if (count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED)) != 0) {
    drain(slab, take_remote(slab));
    return take_freed(slab);
  }
  return slab->carved < slab->capacity ? carve(slab) : nullptr;
}

uint32_t drain(SlabHeader* slab, uint64_t word) {
  const uint32_t count = count_of(word);
  void* block = chain_of(word);
  if (count > slab->used()) corrupted(slab, "more blocks were freed than were handed out");
  for (uint32_t left = count; left != 0; --left) {
    if (block == nullptr) corrupted(slab, "a freed block was written to or freed twice");
    void* next = link_of(block);
    link_of(block) = slab->free;
    slab->free = block;
    slab->sum += reinterpret_cast<uintptr_t>(block);
    block = next;
  }
  if (block != nullptr) corrupted(slab, "a freed block was written to or freed twice");
  slab->countdown = slab->used() - count;
  slab->rest = 0;
  return count;
}

void put_block(SlabHeader* slab, void* block) {
  link_of(block) = slab->free;
  slab->free = block;
  slab->sum += reinterpret_cast<uintptr_t>(block);
  slab->countdown = slab->used() - 1;
  slab->rest = 0;
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

void check_empty(SlabHeader* slab, void* chain, uint32_t count) {
  uintptr_t sum = slab->sum;
  for (; count != 0; --count) {
    if (chain == nullptr) corrupted(slab, "a freed block was written to or freed twice");
    sum += reinterpret_cast<uintptr_t>(chain);
    chain = link_of(chain);
  }
  const uint64_t carved = slab->carved;
  const uint64_t all = carved * reinterpret_cast<uintptr_t>(slab->start) +
                       carved * (carved - 1) / 2 * row_of(slab).block_size;
  if (chain != nullptr || sum != all) corrupted(slab, "a block was freed twice, or a wrong pointer freed");
}

void check_block(const SlabHeader* slab, const void* block, const char* call) {
  const size_t offset = static_cast<size_t>(static_cast<const char*>(block) - slab->start);
  const SizeClass& row = row_of(slab);
  const size_t index = block_index(row, offset);
  if (index < slab->carved && index * row.block_size == offset) return;
  base::Line line;
  line << call << "(" << block << "): ";
  if (index < slab->carved) {
    line << "points " << (offset - index * row.block_size) << " bytes into a block of " << row.block_size
         << " bytes at " << static_cast<const void*>(slab->start + index * row.block_size);
  } else {
    line << "points into a slab of " << row.block_size << "-byte blocks where no block was ever handed out";
  }
  base::die(line);
}

}  // namespace hummock::slab
