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
// free has seen that each block is the start of one and was not free; that nobody wrote to it since is seen
// when it leaves its list.
#include "heap/allocate.h"
#include "heap/diagnose.h"
#include "heap/refill.h"
#include "heap/release.h"

namespace hummock::heap {
namespace {

constexpr int kListBytes = 32 << 10;
constexpr int kListBlocks = 256;
constexpr int kListLeast = 2;
constexpr int kLeastBlocks = 8;
constexpr int kFirstBytes = 64 << 10;  // of a reserve, before anything was learnt
constexpr int kMostBytes = 256 << 10;

constexpr int in_bounds(int blocks, int least, int most) {
  return blocks < least ? least : blocks > most ? most : blocks;
}

int block_size(unsigned size_class) {
  return static_cast<int>(slab::kTable.row[size_class].block_size);
}

int list_blocks(unsigned size_class) {
  return in_bounds(kListBytes / block_size(size_class), kListLeast, kListBlocks);
}

uint8_t lists_of(int bytes, unsigned size_class) {
  const int list = list_blocks(size_class) * block_size(size_class);
  return static_cast<uint8_t>(in_bounds(bytes / list, 1, static_cast<int>(kReserveLists)));
}

struct List {
  void* first;
  unsigned count;
};

SlabHeader* slab_of(const void* block) {
  SlabHeader* slab = pages::header_of(block);
  return slab - slab->back;
}

// Ends the list of recent blocks and begins a new one.
List cut_recent(Bin& bin) {
  const List list = {bin.recent, static_cast<unsigned>(bin.limit - bin.room)};
  bin.recent = &bin;
  bin.room = bin.limit;
  return list;
}

List reserved(const Heap* heap, unsigned size_class, unsigned position) {
  void* first = heap->reserved[size_class][position % kReserveLists];
  return {first, static_cast<unsigned>(heap->bins[size_class].limit) + 1};
}

// Its slab's own list gets the block, and those to come.
void give_to_slab(Heap* heap, void* block) {
  SlabHeader* slab = slab_of(block);
  const uintptr_t owner = owner_of(slab);
  const uintptr_t mine = reinterpret_cast<uintptr_t>(heap);
  if ((owner & ~kDirect) != mine) return give_foreign(heap, slab, block);
  if (owner == mine) make_direct(heap, slab);
  release_to_slab(heap, slab, block);
}

void give_list(Heap* heap, const List& list, unsigned size_class) {
  void* block = list.first;
  for (unsigned left = list.count; left != 0; --left) {
    // It stays marked as free all the while.
    void* next = slab::next_of(block);
    if (__builtin_expect(next == slab::kNoLink, false)) bad_bin(block, size_class);
    give_to_slab(heap, block);
    block = next;
  }
}

void give_oldest(Heap* heap, unsigned size_class, unsigned lists) {
  Reserve& reserve = heap->reserve[size_class];
  for (; lists != 0; --lists) {
    const List list = reserved(heap, size_class, reserve.first);
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

// The reserve is empty, or blocks stay as many as they were.
void set_limits(Bin& bin, Reserve& reserve, int blocks, uint8_t lists) {
  const int held = bin.limit - bin.room;
  bin.limit = static_cast<int16_t>(blocks - 1);
  bin.room = bin.limit - held;
  reserve.allowed = lists;
}

void count_beyond(Reserve& reserve, int blocks) {
  const int sum = reserve.beyond + (blocks + kLeastBlocks - 1) / kLeastBlocks;
  reserve.beyond = static_cast<uint16_t>(sum < UINT16_MAX ? sum : UINT16_MAX);
}

// More frees than requests are to come: all goes back, and little is kept from now on.
void keep_few(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  count_beyond(reserve, static_cast<int>(count_recent(heap, size_class)));
  give_recent(heap, size_class);
  set_limits(heap->bins[size_class], reserve, kLeastBlocks, 0);
}

// True when another list may be put aside.
bool make_room(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (++reserve.evicted < reserve.allowed) {
    count_beyond(reserve, heap->bins[size_class].limit + 1);
    give_oldest(heap, size_class, 1);
    return true;
  }
  // As much was given back as is kept, with nothing asked for meanwhile: more frees are to come.
  keep_few(heap, size_class);
  return false;
}

// Blocks that were given back for being too many are asked for again. Could all have been kept, the next ones
// will be; if not, the way back should be short for most.
void learn(Reserve& reserve, unsigned size_class) {
  const int list = list_blocks(size_class);
  const int wanted = reserve.most + (reserve.beyond * kLeastBlocks + list - 1) / list;
  const bool fits = wanted <= lists_of(kMostBytes, size_class);
  reserve.most = fits ? static_cast<uint8_t>(wanted) : static_cast<uint8_t>((reserve.most + 1) / 2);
  reserve.beyond = 0;
}

}  // namespace

void open_bins(Heap* heap) {
  for (unsigned c = 0; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    bin = Bin();
    bin.blocks = bin.recent = &bin;
    bin.multiplier = slab::kTable.row[c].multiplier;
    heap->current[c] = nullptr;
    Reserve& reserve = heap->reserve[c];
    reserve.first = reserve.count = reserve.least = reserve.evicted = reserve.direct = reserve.borrowed = 0;
    reserve.beyond = 0;
    reserve.taken = false;
    if (c == 0) continue;
    reserve.most = lists_of(kFirstBytes, c);
    set_limits(bin, reserve, kLeastBlocks, 0);  // until the first is asked for
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
    list = reserved(heap, size_class, reserve.first + --reserve.count);
    if (reserve.count < reserve.least) reserve.least = reserve.count;
  }
  bin.blocks = list.first;
  void* block = pop(&bin);
  if (__builtin_expect(block == nullptr, false)) bad_bin(list.first, size_class);
  return block;
}

void put_aside(Bin* bin) {
  Heap* heap = thread_heap;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(bin) - reinterpret_cast<uintptr_t>(heap->bins);
  if (__builtin_expect(offset >= sizeof heap->bins, false)) {
    // The child of a fork: a slab of a thread that is no more, where this one has its address. What that
    // thread held is lost to the child, and so are these blocks.
    cut_recent(*bin);
    return;
  }
  const unsigned size_class = static_cast<unsigned>(offset / sizeof(Bin));
  Reserve& reserve = heap->reserve[size_class];
  if (__builtin_expect(reserve.count == reserve.allowed, false) && !make_room(heap, size_class)) return;
  const unsigned at = (reserve.first + reserve.count++) % kReserveLists;
  const List list = cut_recent(*bin);
  heap->reserved[size_class][at] = list.first;
}

void after_shortage(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  if (reserve.beyond != 0) learn(reserve, size_class);
  reserve.evicted = reserve.borrowed = 0;
  set_limits(heap->bins[size_class], reserve, list_blocks(size_class), reserve.most);
}

void lighten(Heap* heap, unsigned size_class) {
  Reserve& reserve = heap->reserve[size_class];
  count_beyond(reserve, 256);
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

namespace {

constexpr unsigned kMostChecked = 300;
static_assert(kMostChecked > kListBlocks);

void check_marked(const SlabHeader* slab, void* block) {
  if (!slab::stands_in(slab, block) || !slab::looks_free(slab, block)) bad_bin(block, slab->size_class);
}
void* check_next(const SlabHeader* slab, void* block, void* next) {
  if (next == slab::kNoLink) bad_bin(block, slab->size_class);
  return next;
}

// The free list of a slab of ours, and what others freed there, to which they only add.
void check_slab(const Heap* heap, const SlabHeader* slab) {
  if ((owner_of(slab) & ~kDirect) != reinterpret_cast<uintptr_t>(heap)) return;
  void* block = slab->free;
  for (unsigned left = kMostChecked; left != 0 && block != slab::end_of(slab); --left) {
    check_marked(slab, block);
    block = check_next(slab, block, slab::next_free(slab, block));
  }
  // acquire: pairs with the release of push_remote.
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  if ((word & slab::kGone) != 0) return;
  block = slab::chain_of(word);
  for (unsigned left = kMostChecked; left != 0 && block != nullptr; --left) {
    const bool good = slab::stands_in(slab, block) && slab::looks_free(slab, block);
    void* next = good ? slab::next_remote_free(slab, block) : slab::kNoLink;
    // A trim of another thread may have taken the chain, and turn it round.
    if (next == slab::kNoLink && __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) != word) return;
    check_marked(slab, block);
    block = check_next(slab, block, next);
  }
}

void check_slabs(const Heap* heap, const SlabHeader* slab) {
  for (unsigned left = kMostChecked; left != 0 && slab != nullptr; --left, slab = slab->next) {
    check_slab(heap, slab);
  }
}

// Some of the list's blocks, and that it has so many. Where it has not, a block of it is in another list,
// too.
void check_list(const Bin& bin, const List& list, unsigned size_class) {
  void* block = list.first;
  unsigned count = 0;
  for (; count != kMostChecked && block != &bin; ++count) {
    void* next = pages::find_slab(block) == nullptr ? slab::kNoLink : slab::next_of(block);
    if (next == slab::kNoLink || count == list.count) bad_bin(block, size_class);
    block = next;
  }
  if (block == &bin && count != list.count) bad_bin(list.first, size_class);
}

void check_lists(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  check_list(bin, {bin.recent, static_cast<unsigned>(bin.limit - bin.room)}, size_class);
  if (bin.blocks != &bin && slab::next_of(bin.blocks) == slab::kNoLink) bad_bin(bin.blocks, size_class);
  const Reserve& reserve = heap->reserve[size_class];
  for (unsigned i = 0; i < reserve.count; ++i) {
    check_list(bin, reserved(heap, size_class, reserve.first + i), size_class);
  }
}

}  // namespace

void check_freed_lately() {
  Heap* heap = thread_heap;
  if (!heap->attached) return;
  flush_remote(heap);
  for (unsigned c = 1; c < slab::kTiny; ++c) {
    check_lists(heap, c);
    if (heap->current[c] != nullptr) check_slab(heap, heap->current[c]);
    check_slabs(heap, heap->partial[c].front());
  }
  check_slabs(heap, heap->full.front());
}

void empty_bin(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  give_recent(heap, size_class);
  while (void* block = pop_any(&bin, size_class)) give_to_slab(heap, block);
  check_bin(heap, size_class);
}

void* pop_tiny(Bin* bin) {
  void* block = bin->blocks;
  if (block == bin) return nullptr;
  const SlabHeader* slab = slab_of(block);
  void* next = slab::next_free(slab, block);
  if (next == slab::kNoLink) return nullptr;
  bin->blocks = next == slab::end_of(slab) ? bin : next;
  slab::tiny_word(block) = 0;
  return block;
}

}  // namespace hummock::heap
