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
// A list that is taken is checked to be of starts of blocks alone, by the sum of their addresses or one by
// one. That no block stands in it twice is seen by its stamp, when it is handed out.
#include "heap/allocate.h"
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

struct List {
  void* first;
  unsigned count;
  uint64_t sum;
};

SlabHeader* slab_of(const void* block) {
  SlabHeader* slab = pages::header_of(block);
  return slab - slab->back;
}

bool are_blocks(const Bin& bin, const List& list) {
  const SlabHeader* slab = nullptr;
  void* block = list.first;
  for (unsigned left = list.count; left != 0; --left, block = slab::link_of(block)) {
    if (slab == nullptr || !slab::stands_in(slab, block)) slab = slab_of(block);
    if (!slab::is_block(slab, block)) return false;
  }
  return block == &bin;
}

void check_list(const Bin& bin, const List& list, unsigned size_class) {
  const bool good = slab::stands_at_multiples(size_class)
                        ? list.sum % slab::kTable.row[size_class].block_size == 0
                        : are_blocks(bin, list);
  if (__builtin_expect(!good, false)) bad_list(list.first, list.count, size_class);
}

// Ends the list of recent blocks and begins a new one.
List cut_recent(Bin& bin) {
  const List list = {bin.recent, static_cast<unsigned>(bin.limit - bin.room), bin.sum};
  bin.recent = &bin;
  bin.sum = 0;
  bin.room = bin.limit;
  return list;
}

List reserved(const Bin& bin, const Reserve& reserve, unsigned position) {
  const unsigned at = position % kReserveLists;
  return {reserve.list[at], static_cast<unsigned>(bin.limit) + 1, reserve.sum[at]};
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
  const Bin& bin = heap->bins[size_class];
  check_list(bin, list, size_class);
  void* block = list.first;
  for (unsigned left = list.count; left != 0; --left) {
    if (slab::stamp_of(block) != reinterpret_cast<uintptr_t>(&bin)) bad_bin(block, size_class);
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

// More frees than requests are to come: all goes back, and little is kept from now on.
void keep_few(Heap* heap, unsigned size_class) {
  give_recent(heap, size_class);
  set_limits(heap->bins[size_class], heap->reserve[size_class], kLeastBlocks, 0);
}

// True when another list may be put aside.
bool make_room(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (++reserve.evicted < reserve.allowed) {
    give_oldest(heap, size_class, 1);
    return true;
  }
  // As much was given back as is kept, with nothing asked for meanwhile: more frees are to come.
  keep_few(heap, size_class);
  return false;
}

}  // namespace

void open_bins(Heap* heap) {
  for (unsigned c = 0; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    bin = Bin();
    bin.blocks = bin.recent = &bin;
    heap->current[c] = nullptr;
    Reserve& reserve = heap->reserve[c];
    reserve.first = reserve.count = reserve.least = reserve.evicted = reserve.direct = 0;
    reserve.taken = false;
    if (c != 0) set_limits(bin, reserve, list_blocks(c), most_lists(c));
  }
}

void* take_recent(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  Reserve& reserve = heap->reserve[size_class];
  check_bin(heap, size_class);
  reserve.taken = true;
  reserve.evicted = reserve.direct = 0;
  List list;
  if (bin.recent != &bin) {
    list = cut_recent(bin);
  } else {
    list = reserved(bin, reserve, reserve.first + --reserve.count);
    if (reserve.count < reserve.least) reserve.least = reserve.count;
  }
  check_list(bin, list, size_class);
  bin.blocks = list.first;
  void* block = pop(&bin);
  if (__builtin_expect(block == nullptr, false)) bad_bin(list.first, size_class);
  return block;
}

void put_aside(Heap* heap, Bin* bin) {
  const unsigned size_class = static_cast<unsigned>(bin - heap->bins);
  Reserve& reserve = heap->reserve[size_class];
  if (__builtin_expect(reserve.count == reserve.allowed, false) && !make_room(heap, size_class)) return;
  const unsigned at = (reserve.first + reserve.count++) % kReserveLists;
  const List list = cut_recent(*bin);
  reserve.list[at] = list.first;
  reserve.sum[at] = list.sum;
}

void after_shortage(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  reserve.evicted = 0;
  set_limits(heap->bins[size_class], reserve, list_blocks(size_class), most_lists(size_class));
}

void lighten(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (reserve.count != 0) return give_oldest(heap, size_class, 1);
  keep_few(heap, size_class);
}

namespace {

void sweep_next(Heap* heap) {
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

}  // namespace

void sweep(Heap* heap, unsigned classes) {
  for (; classes != 0; --classes) sweep_next(heap);
  if (heap->remote_used) flush_remote(heap);
}

void give_all_recent(Heap* heap) {
  for (unsigned c = 1; c < slab::kClasses; ++c) give_recent(heap, c);
  flush_remote(heap);
}

unsigned count_recent(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  const int lists = heap->reserve[size_class].count;
  return static_cast<unsigned>(bin.limit - bin.room + lists * (bin.limit + 1));
}

void empty_bin(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  give_recent(heap, size_class);
  while (void* block = pop_any(&bin, size_class)) give_to_slab(heap, block);
  check_bin(heap, size_class);
}

}  // namespace hummock::heap
