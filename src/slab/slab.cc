#include "slab/slab.h"

#include "base/message.h"
#include "slab/gone.h"

namespace hummock::slab {
namespace {

// At once, of memory never used: two pages, as no memory is touched long before it is needed; one, where
// that is enough for this many blocks.
constexpr size_t kCarveBlocks = 80;

// The sum of the weights of all carved blocks that are in use or in a list.
uint64_t sum_of_carved(const SlabHeader* slab) {
  const uint64_t all = sum_of(slab, {0, slab->carved});
  return slab->gone.own == 0 ? all : all - sum_of_gone(slab, slab->gone.own);
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

// Makes a list of adjacent blocks.
void* link_up(SlabHeader* slab, Range range) {
  const size_t size = row_of(slab).block_size;
  char* block = slab->start + range.first * size;
  void* first = block;
  for (size_t left = range.end - range.first; left != 0; --left, block += size) {
    if (has_stamp(slab)) stamp_of(block) = reinterpret_cast<uintptr_t>(slab->bin);
    link_of(block) = left != 1 ? block + size : end_of(slab);
  }
  return first;
}

// The blocks of the first page that is gone; its memory comes back as it is touched.
void* take_gone(SlabHeader* slab) {
  const unsigned page = static_cast<unsigned>(__builtin_ctz(slab->gone.own));
  const Range range = range_in_page(slab, page);
  slab->gone.own = static_cast<uint16_t>(slab->gone.own & (slab->gone.own - 1));
  slab->live_sum += sum_of(slab, range);
  return link_up(slab, range);
}

// Only when no carved block is free: then all of them are in use after.
void* carve(SlabHeader* slab) {
  const size_t bytes = row_of(slab).block_size * kCarveBlocks > kSmallPage ? 2 * kSmallPage : kSmallPage;
  // Up to the end of a page: so that few blocks stand in pages with what was carved before or will be after.
  const size_t carved = slab->carved;
  const size_t begin = offset_of(slab, carved);
  const size_t end = first_from(slab, base::align_down(begin + bytes, kSmallPage));
  const Range range = {carved, end > carved ? end : carved + 1};
  void* first = link_up(slab, range);
  set_relaxed(slab->carved, static_cast<uint16_t>(range.end));
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
  slab->gone.own = 0;
  set_relaxed(slab->notify, worth_while(slab));
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
  if (slab->gone.own != 0) return take_gone(slab);
  return slab->carved < slab->capacity ? carve(slab) : nullptr;
}

bool take_remote(SlabHeader* slab, uint64_t left, uint32_t least, Returned* returned) {
  // acquire: pairs with the release of push_remote, so that links and gone.remote are seen. Who changes the
  // latter takes the word first, and leaves another one: with the same count kTurn differs. It changes once
  // for a count, as other pages can only go when more blocks have come.
  uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  uint16_t gone;
  do {
    if (count_of(word) < least) return false;
    gone = (word & kGone) != 0 ? __atomic_load_n(&slab->gone.remote, __ATOMIC_RELAXED) : uint16_t{0};
    // release: who takes a slab over has written its owner.
  } while (!__atomic_compare_exchange_n(&slab->remote, &word, word & left, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  set_relaxed(slab->gone.seen, uint16_t{0});
  *returned = {chain_of(word), count_of(word), gone};
  return true;
}

void drain(SlabHeader* slab, const Returned& returned) {
  uint32_t left = returned.count;
  if (returned.gone != 0) {
    left -= count_gone(slab, returned.gone);
    slab->gone.own |= returned.gone;
    slab->live_sum -= sum_of_gone(slab, returned.gone);
  }
  void* block = returned.chain;
  for (; left != 0; --left) {
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

Pushed push_remote(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone) {
  uint64_t old = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  for (;;) {
    void* chain = chain_of(old);
    if (first != nullptr) {
      link_of(last) = chain;
      chain = first;
    }
    const uint32_t now = count_of(old) + count;
    const uint64_t flags = old & (kQueued | kSharedBit);
    const bool queue = flags == 0 && now >= __atomic_load_n(&slab->notify, __ATOMIC_RELAXED);
    const uint64_t fresh = pack(chain, now, (queue ? kQueued : flags) | (old & kGoneBits) | gone);
    // release: pairs with take_remote's acquire (the links). acquire: what the giver wrote before it
    // set the shared bit (owner, shared_live, notify) is seen by whoever finds the bit.
    if (__atomic_compare_exchange_n(&slab->remote, &old, fresh, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return {old, queue};
    }
  }
}

void check_empty(const SlabHeader* slab, const Returned& returned) {
  uint64_t sum = slab->live_sum - sum_of_gone(slab, returned.gone);
  uint32_t left = returned.count - count_gone(slab, returned.gone);
  void* block = returned.chain;
  for (; left != 0 && block != nullptr; --left, block = link_of(block)) sum -= weight_of(block);
  if (left != 0 || block != nullptr || sum != 0) {
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
