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

// For blocks without a stamp: the list has exactly `count` blocks, which add up to `sum`. A block that was
// freed twice makes a cycle or a short cut, an overwritten link leads elsewhere.
void check_list(const SlabHeader* slab, size_t count, uint64_t sum) {
  void* block = slab->free;
  uint64_t seen = 0;
  for (; count != 0 && stands_in(slab, block); --count, block = link_of(block)) {
    seen += weight_of(block);
  }
  if (count != 0 || block != end_of(slab) || seen != sum) {
    corrupted(slab, "a freed block was written to or freed twice");
  }
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
void* carve(SlabHeader* slab) {
  const SizeClass& row = row_of(slab);
  const size_t want = kCarveBytes / row.block_size != 0 ? kCarveBytes / row.block_size : 1;
  const size_t left = slab->capacity - slab->carved;
  const size_t count = want < left ? want : left;
  char* first = slab->start + size_t{slab->carved} * row.block_size;
  char* block = first;
  for (size_t i = 0; i < count; ++i, block += row.block_size) {
    if (has_stamp(slab)) stamp_of(block) = reinterpret_cast<uintptr_t>(slab->bin);
    link_of(block) = i + 1 < count ? block + row.block_size : end_of(slab);
  }
  set_relaxed(slab->carved, static_cast<uint16_t>(slab->carved + count));
  slab->live_sum = sum_of_carved(slab);
  return first;
}

// What the owner freed. All of them are blocks; each is looked at once more when it is handed out.
void* take_freed(SlabHeader* slab) {
  void* first = slab->free;
  const uint64_t all = sum_of_carved(slab);
  const size_t used = checked_used(slab);
  if (!has_stamp(slab)) check_list(slab, slab->carved - used, all - slab->live_sum);
  slab->free = end_of(slab);
  slab->live_sum = all;
  return first;
}

}  // namespace

SlabHeader* create(unsigned size_class, Kind kind) {
  const SizeClass& row = kTable.row[size_class];
  SlabHeader* slab = pages::allocate_span(row.slots).header;
  if (slab == nullptr) return nullptr;
  slab->bin = nullptr;
  slab->free = end_of(slab);
  slab->live_sum = 0;
  set_relaxed(slab->carved, uint16_t{0});
  slab->capacity = row.capacity;
  if (stands_at_multiples(size_class)) {
    const size_t skip = row.block_size - 1 - (reinterpret_cast<uintptr_t>(slab->start) - 1) % row.block_size;
    slab->start += skip;
    slab->capacity = static_cast<uint16_t>((slab->bytes - skip) / row.block_size);
  }
  slab->size_class = static_cast<uint8_t>(size_class);
  slab->home_frees = slab->full = slab->listed = false;
  set_relaxed(slab->notify, uint32_t{slab->capacity / 4u != 0 ? slab->capacity / 4u : 1u});
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
  slab->start -= reinterpret_cast<uintptr_t>(slab->start) % kSlotSize;
  for (unsigned i = 1; i < slab->slots; ++i) slab[i].kind = Kind::free;
  pages::release_span(slab);
}

void set_bin(SlabHeader* slab, heap::Bin* bin) {
  const void* end = end_of(slab);
  const uintptr_t stamp = reinterpret_cast<uintptr_t>(slab->bin);
  for (unsigned i = 0; i < slab->slots; ++i) slab[i].bin = bin;
  void** link = &slab->free;
  for (size_t left = slab->carved; *link != end; --left) {
    void* block = *link;
    if (left == 0 || !stands_in(slab, block) || (has_stamp(slab) && stamp_of(block) != stamp)) {
      corrupted(slab, "a freed block was written to or freed twice");
    }
    if (has_stamp(slab)) stamp_of(block) = reinterpret_cast<uintptr_t>(bin);
    link = &link_of(block);
  }
  *link = bin;
}

void* take_blocks(SlabHeader* slab) {
  if (slab->free == end_of(slab) && count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED)) != 0) {
    drain(slab, take_remote(slab));
  }
  if (slab->free != end_of(slab)) return take_freed(slab);
  return slab->carved < slab->capacity ? carve(slab) : nullptr;
}

void drain(SlabHeader* slab, uint64_t word) {
  void* block = chain_of(word);
  for (uint32_t left = count_of(word); left != 0; --left) {
    if (!stands_in(slab, block) || (has_stamp(slab) && stamp_of(block) != mark_of(block))) {
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

void check_block(const SlabHeader* slab, const void* block, const char* call, End end) {
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
  end(line);
}

}  // namespace hummock::slab
