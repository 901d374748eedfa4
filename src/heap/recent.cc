// Blocks that a thread freed lately, by class: how they are handed out again, the last freed first, and
// how they go back to their slabs when there are too many, or when nobody asks for them.
//
// free adds to the bin's list `recent`. A list that is full is put aside, in the class's reserve, and a
// new one begun; a reserve that is full gives the blocks of its oldest list back to their slabs.
//
// So there are two kinds of slabs of a heap: those whose frees go to `recent` (owner = heap), and those
// whose frees go straight to their own list (owner = heap + kDirect). A slab becomes the first when
// blocks are taken from it, the second when a block of it had to go back. A thread that frees much more
// than it allocates pays the way back for few blocks of each slab, and keeps few slabs from becoming empty.
//
// Nothing is handed out before its list was checked, and no list is touched before the bin has run out in
// its own end: a block that was freed twice makes a cycle in one list, or leads from one list into another.
#include "heap/diagnose.h"
#include "heap/refill.h"
#include "heap/release.h"

namespace hummock::heap {
namespace {

constexpr int kListBytes = 16 << 10;
constexpr int kListBlocks = 256;
constexpr int kListLeast = 2;
constexpr int kLeastBlocks = 8;
constexpr int kReserveBytes = 64 << 10;

constexpr int in_bounds(int blocks, int least, int most) {
  return blocks < least ? least : blocks > most ? most : blocks;
}

int block_size(unsigned size_class) {
  return static_cast<int>(slab::kTable.row[size_class].block_size);
}

int list_blocks(unsigned size_class) {
  return in_bounds(kListBytes / block_size(size_class), kListLeast, kListBlocks);
}

int most_lists(unsigned size_class) {
  const int bytes = list_blocks(size_class) * block_size(size_class);
  return in_bounds(kReserveBytes / bytes, 1, static_cast<int>(kReserveLists));
}

// A list of freed blocks, and the turn that its end names.
struct List {
  void* first;
  unsigned count;
  uint16_t turn;
};

// Follows `Links` links; `sum` gathers what shows that the blocks are blocks, see check_list.
template <int Links, bool Power>
__attribute__((always_inline)) inline void* follow(void* block, uintptr_t& sum) {
  if constexpr (Links == 0) {
    return block;
  } else {
    const uintptr_t a = reinterpret_cast<uintptr_t>(block);
    sum = Power ? sum | a : sum + static_cast<uint16_t>(a);
    asm("" : "+r"(sum));  // at once: the compiler would keep all addresses first
    return follow<Links - 1, Power>(slab::link_of(block), sum);
  }
}

// What follows after `count` blocks. This is the walk that every block costs, so there is no test per
// link: one overwritten with garbage may end in a fault.
template <bool Power>
__attribute__((always_inline)) inline void* walk(void* block, unsigned count, uintptr_t& sum) {
  for (; count >= 32; count -= 32) block = follow<32, Power>(block, sum);
  for (; count != 0; --count) block = follow<1, Power>(block, sum);
  return block;
}

SlabHeader* slab_of(const void* block) {
  SlabHeader* slab = pages::header_of(block);
  return slab - slab->back;
}

// For slabs of several slots: few blocks, so each is looked at.
void* check_each(void* block, unsigned count) {
  const SlabHeader* slab = nullptr;
  for (; count != 0 && !slab::is_end(block); --count) {
    if (slab == nullptr || !slab::stands_in(slab, block)) slab = slab_of(block);
    if (!slab::is_block(slab, block)) return nullptr;
    block = slab::link_of(block);
  }
  return block;
}

// The list has its length and its end, and all are starts of blocks: in one slot, those are multiples of
// their size, so what is none leaves a remainder.
__attribute__((always_inline)) inline void check_list(const Bin& bin, const List& list, unsigned size_class) {
  const slab::SizeClass& row = slab::kTable.row[size_class];
  const uint32_t size = row.block_size;
  void* end;
  uintptr_t sum = 0;
  if ((size & (size - 1)) == 0 && row.slots == 1) {
    end = walk<true>(list.first, list.count, sum);
    sum &= size - 1;
  } else if (row.slots == 1) {
    end = walk<false>(list.first, list.count, sum);
    sum = static_cast<uint32_t>(sum) % size;
  } else {
    end = check_each(list.first, list.count);
  }
  if (__builtin_expect(sum != 0 || end != list_end(bin, list.turn), false)) {
    bad_list(list.first, list.count, size_class);
  }
}

// Ends the list of recent blocks and begins a new one.
List cut_recent(Bin& bin) {
  const List list = {bin.recent, static_cast<unsigned>(bin.limit - bin.room), bin.turn};
  bin.turn = next_turn(bin.turn);
  bin.recent = list_end(bin, bin.turn);
  bin.room = bin.limit;
  return list;
}

List reserved(const Bin& bin, const Reserve& reserve, unsigned position) {
  const unsigned at = position % kReserveLists;
  return {reserve.list[at], static_cast<unsigned>(bin.limit) + 1, reserve.turn[at]};
}

// Its slab's own list gets the block, and those to come.
void give_to_slab(Heap* heap, void* block) {
  SlabHeader* slab = slab_of(block);
  const uintptr_t owner = owner_of(slab);
  const uintptr_t mine = reinterpret_cast<uintptr_t>(heap);
  if ((owner & ~kDirect) != mine) return give_foreign(heap, slab, block);
  slab::check_block(slab, block, "free");
  if (owner == mine) make_direct(heap, slab);
  release_to_slab(heap, slab, block);
}

void give_list(Heap* heap, const List& list, unsigned size_class) {
  if (list.count == 0) return;
  check_list(heap->bins[size_class], list, size_class);
  void* block = list.first;
  for (unsigned left = list.count; left != 0; --left) {
    void* next = slab::link_of(block);
    give_to_slab(heap, block);
    block = next;
  }
}

void give_oldest(Heap* heap, unsigned size_class, unsigned lists) {
  Reserve& reserve = heap->reserve[size_class];
  for (; lists != 0; --lists) {
    const List list = reserved(heap->bins[size_class], reserve, reserve.first);
    reserve.first = (reserve.first + 1) % kReserveLists;
    --reserve.count;
    if (reserve.count < reserve.least) reserve.least = reserve.count;
    give_list(heap, list, size_class);
  }
}

void give_recent(Heap* heap, unsigned size_class) {
  give_oldest(heap, size_class, heap->reserve[size_class].count);
  give_list(heap, cut_recent(heap->bins[size_class]), size_class);
}

// The reserve is empty.
void set_limits(Bin& bin, Reserve& reserve, int blocks, int lists) {
  const int held = bin.limit - bin.room;
  bin.limit = static_cast<int16_t>(blocks - 1);
  bin.room = bin.limit - held;
  reserve.allowed = static_cast<uint8_t>(lists);
}

// True when another list may be put aside.
bool make_room(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (++reserve.evicted < reserve.allowed) {
    give_oldest(heap, size_class, 1);
    return true;
  }
  // As much was given back as is kept, with nothing asked for meanwhile: more frees are to come.
  give_recent(heap, size_class);
  set_limits(heap->bins[size_class], reserve, kLeastBlocks, 0);
  return false;
}

}  // namespace

void open_bins(Heap* heap) {
  for (unsigned c = 0; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    bin.blocks = list_end(bin, kFresh);
    bin.turn = next_turn(kFresh);
    bin.recent = list_end(bin, bin.turn);
    bin.limit = 0;
    bin.room = 0;
    bin.current = nullptr;
    Reserve& reserve = heap->reserve[c];
    reserve.first = reserve.count = reserve.least = reserve.evicted = reserve.direct = 0;
    reserve.bin_turn = kFresh;
    reserve.taken = false;
    if (c != 0) set_limits(bin, reserve, list_blocks(c), most_lists(c));
  }
}

void* take_single(Heap* heap, Bin* bin) {
  const Reserve& reserve = heap->reserve[bin - heap->bins];
  void* block = bin->recent;
  const bool good = bin->blocks == list_end(*bin, reserve.bin_turn) &&
                    slab::link_of(block) == list_end(*bin, bin->turn) &&
                    slab::is_block(slab_of(block), block);
  if (__builtin_expect(!good, false)) return nullptr;
  bin->recent = slab::link_of(block);
  bin->room = bin->limit;
  return block;
}

void* take_recent(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  Reserve& reserve = heap->reserve[size_class];
  check_bin(heap, size_class);
  reserve.taken = true;
  reserve.evicted = reserve.direct = 0;
  List list;
  if (!slab::is_end(bin.recent)) {
    list = cut_recent(bin);
  } else {
    list = reserved(bin, reserve, reserve.first + --reserve.count);
    if (reserve.count < reserve.least) reserve.least = reserve.count;
  }
  check_list(bin, list, size_class);
  reserve.bin_turn = list.turn;
  bin.blocks = slab::link_of(list.first);
  return list.first;
}

void put_aside(Heap* heap, Bin* bin) {
  const unsigned size_class = static_cast<unsigned>(bin - heap->bins);
  Reserve& reserve = heap->reserve[size_class];
  if (__builtin_expect(reserve.count == reserve.allowed, false) && !make_room(heap, size_class)) return;
  const unsigned at = (reserve.first + reserve.count++) % kReserveLists;
  const List list = cut_recent(*bin);
  reserve.list[at] = list.first;
  reserve.turn[at] = list.turn;
}

void after_shortage(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  reserve.evicted = 0;
  set_limits(heap->bins[size_class], reserve, list_blocks(size_class), most_lists(size_class));
}

void lighten(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (reserve.count != 0) return give_oldest(heap, size_class, 1);
  give_recent(heap, size_class);
  set_limits(heap->bins[size_class], reserve, kLeastBlocks, 0);
}

void sweep(Heap* heap) {
  heap->swept = static_cast<uint8_t>(heap->swept % (slab::kClasses - 1) + 1);
  const unsigned size_class = heap->swept;
  Reserve& reserve = heap->reserve[size_class];
  if (!reserve.taken) {
    give_recent(heap, size_class);
  } else {
    give_oldest(heap, size_class, (reserve.least + 1u) / 2);
  }
  reserve.least = reserve.count;
  reserve.taken = false;
}

void give_all_recent(Heap* heap) {
  for (unsigned c = 1; c < slab::kClasses; ++c) give_recent(heap, c);
}

unsigned count_recent(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  const int lists = heap->reserve[size_class].count;
  return static_cast<unsigned>(bin.limit - bin.room + lists * (bin.limit + 1));
}

void empty_bin(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  give_recent(heap, size_class);
  while (!slab::is_end(bin.blocks)) {
    void* block = bin.blocks;
    bin.blocks = slab::link_of(block);
    give_to_slab(heap, block);
  }
  check_bin(heap, size_class);
}

}  // namespace hummock::heap
