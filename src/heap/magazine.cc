// Magazines: blocks that a thread freed lately, by class, and hands out again, the last freed first.
//
// free adds to the bin's magazine. It begins with no room, and grows by doubling while blocks of the class
// are asked for and the thread may hold more (heap/allowance.h). One that is full at full length is put
// aside, for a new one; malloc takes back the newest when the bin has run out. Where there is no room for
// more, the block that was freed last goes back to its slab; and when many were freed so and none asked for,
// what the class holds goes back, too, a magazine at a time.
//
// So there are two kinds of slabs of a heap: those whose frees go to the magazine (owner = heap), and those
// whose frees go straight to their own list (owner = heap + kDirect). A slab becomes the first when blocks
// are taken from it, the second when a block of it had to go back. A thread that frees much more than it
// allocates pays the way back for few blocks of each slab, and keeps few slabs from becoming empty.
//
// free has seen that each block is the start of one and was not free; that nobody wrote to it since is seen
// when it leaves its magazine.
#include "heap/magazine.h"

#include "heap/allowance.h"
#include "heap/diagnose.h"
#include "heap/refill.h"
#include "heap/release.h"

namespace hummock::heap {
namespace {

constexpr size_t kMagazineBytes = 32 << 10;
constexpr unsigned kMostBlocks = 256;
constexpr unsigned kLeastBlocks = 2;
constexpr size_t kClassBytes = 128 << 10;
constexpr size_t kFirstBytes = 2 << 10;  // a magazine's first room
constexpr unsigned kFirstBlocks = 8;
constexpr unsigned kMostFlushed = 256;  // blocks, in one call
// Bytes freed straight to slabs until a class that is not asked for is flushed: so many for each that it
// holds.
constexpr size_t kFreesPerFlushed = 4;
constexpr size_t kLeastPause = 16 << 10;

constexpr unsigned in_bounds(size_t blocks, unsigned least, unsigned most) {
  return blocks < least ? least : blocks > most ? most : static_cast<unsigned>(blocks);
}

size_t block_size(unsigned size_class) {
  return slab::kTable.row[size_class].block_size;
}
// Blocks of a magazine that is full, by class.
struct Capacities {
  uint16_t of[slab::kClasses];
};
constexpr Capacities make_capacities() {
  Capacities table = {};
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    const size_t blocks = kMagazineBytes / slab::kTable.row[c].block_size;
    table.of[c] = static_cast<uint16_t>(in_bounds(blocks, kLeastBlocks, kMostBlocks));
  }
  return table;
}
constexpr Capacities kCapacities = make_capacities();

unsigned capacity_of(unsigned size_class) {
  return kCapacities.of[size_class];
}
size_t full_bytes(unsigned size_class) {
  return capacity_of(size_class) * block_size(size_class);
}
unsigned most_full(unsigned size_class) {
  return in_bounds(kClassBytes / full_bytes(size_class), 1, kMostFull);
}

SlabHeader* slab_of(const void* block) {
  SlabHeader* slab = pages::header_of(block);
  return slab - slab->back;
}

unsigned count_held(const Bin& bin) {
  return static_cast<unsigned>(bin.limit - bin.room);
}

// Empties the magazine.
List take_all(Bin& bin) {
  const List list = {bin.magazine, count_held(bin)};
  bin.magazine = &bin;
  bin.room = bin.limit;
  return list;
}

void*& full_at(Heap* heap, unsigned size_class, unsigned position) {
  return heap->full_magazines[size_class][position % kMostFull];
}

// A run of a list: blocks of one slab, one after the other.
struct Run {
  SlabHeader* slab;
  void* first;
  void* last;
  void* next;  // after the last
  unsigned count;
};

// `block` is of the slab, as `known` is.
bool is_in(const SlabHeader* slab, const void* known, const void* block) {
  const uintptr_t apart = reinterpret_cast<uintptr_t>(known) ^ reinterpret_cast<uintptr_t>(block);
  return apart < kSlotSize || slab_of(block) == slab;
}

// It ends with the slab, with `most` blocks, or with the list.
Run run_from(SlabHeader* slab, void* first, unsigned most, unsigned size_class, const Bin* end) {
  Run run = {slab, first, first, first, 0};
  do {
    run.last = run.next;
    // It stays marked as free all the while.
    run.next = slab::next_free(run.slab, run.last);
    if (__builtin_expect(run.next == slab::kNoLink, false)) bad_bin(run.last, size_class);
    ++run.count;
  } while (run.count != most && run.next != end && is_in(run.slab, run.last, run.next));
  return run;
}

// The slab's own list gets them, and blocks to come.
void give_run(Heap* heap, const Run& run) {
  SlabHeader* slab = run.slab;
  if (owner_of(slab) == reinterpret_cast<uintptr_t>(heap)) make_direct(heap, slab);
  slab::put_run(slab, run.first, run.last, run.count);
  if (slab->live == 0) emptied(heap, slab);
}

// The first blocks of a list, at most so many. What is left of it.
void* give_some(Heap* heap, void* first, unsigned most, unsigned size_class) {
  const Bin* end = &heap->bins[size_class];
  while (most != 0 && first != end) {
    SlabHeader* slab = slab_of(first);
    const bool mine = (owner_of(slab) & ~kDirect) == reinterpret_cast<uintptr_t>(heap);
    const Run run = run_from(slab, first, mine ? most : 1, size_class, end);
    first = run.next;
    most -= run.count;
    mine ? give_run(heap, run) : give_foreign(heap, slab, run.first);
  }
  return first;
}

void give_list(Heap* heap, const List& list, unsigned size_class) {
  give_some(heap, list.first, list.count, size_class);
}

void give_oldest(Heap* heap, unsigned size_class) {
  Magazines& magazines = heap->magazines[size_class];
  const List list = full_magazine(heap, size_class, 0);
  magazines.first = (magazines.first + 1) % kMostFull;
  --magazines.count;
  let_go(heap, full_bytes(size_class));
  give_list(heap, list, size_class);
}

void put_aside(Heap* heap, unsigned size_class) {
  Magazines& magazines = heap->magazines[size_class];
  const List list = take_all(heap->bins[size_class]);
  full_at(heap, size_class, magazines.first + magazines.count++) = list.first;
}

size_t room_bytes(const Bin& bin, unsigned size_class) {
  return bin.limit == 0 ? 0 : kSmallPage + static_cast<size_t>(bin.limit) * block_size(size_class);
}

// Of an empty magazine.
void take_room(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  let_go(heap, room_bytes(bin, size_class));
  bin.limit = 0;
  bin.room = 0;
}

void give_magazine(Heap* heap, unsigned size_class) {
  const List list = take_all(heap->bins[size_class]);
  take_room(heap, size_class);
  give_list(heap, list, size_class);
}

// What malloc would have taken next.
void give_blocks(Heap* heap, unsigned size_class, unsigned most) {
  Bin& bin = heap->bins[size_class];
  if (bin.blocks == &bin && heap->rest[size_class].count != 0) bin.blocks = take_rest(heap, size_class);
  bin.blocks = give_some(heap, bin.blocks, most, size_class);
}

// One step: a full magazine, or about as many blocks. False: there is nothing left.
bool flush_step(Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  if (heap->magazines[size_class].count != 0) return give_oldest(heap, size_class), true;
  const unsigned held = count_held(bin);
  if (bin.limit == 0 && held == 0 && bin.blocks == &bin && heap->rest[size_class].count == 0) return false;
  give_magazine(heap, size_class);
  give_blocks(heap, size_class, kMostFlushed - held);
  return true;
}

// The next class: what nobody asked for since the last time goes back, in steps. False: nothing went.
bool sweep_next(Heap* heap, unsigned except, bool hurry = false) {
  heap->hand = static_cast<uint8_t>(heap->hand % (slab::kClasses - 1) + 1);
  Magazines& magazines = heap->magazines[heap->hand];
  if (heap->hand == except) return false;
  const bool asked = magazines.asked;
  magazines.asked = false;
  return (!asked || hurry) && flush_step(heap, heap->hand);
}

constexpr unsigned kRefusalsPerSweep = 32;

// Now and then a class that is not asked for has to give. Not each time: where the classes in use take turns,
// and hold more than they may, it would always be the one that is needed next.
bool hold_or_take(Heap* heap, size_t bytes, unsigned size_class) {
  if (hold(heap, bytes)) return true;
  return ++heap->refusals % kRefusalsPerSweep == 0 && sweep_next(heap, size_class) && hold(heap, bytes);
}

// The magazine has one block more than its limit. False: it cannot have more.
bool make_room(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  const Magazines& magazines = heap->magazines[size_class];
  const int limit = bin.limit;
  const int most = static_cast<int>(capacity_of(size_class)) - 1;
  if (limit == most) {
    const bool may =
        magazines.count != most_full(size_class) && hold_or_take(heap, full_bytes(size_class), size_class);
    if (may) put_aside(heap, size_class);
    return may;
  }
  const size_t size = block_size(size_class);
  int more = limit + 1;
  if (limit == 0) more = static_cast<int>(in_bounds(kFirstBytes / size, 1, kFirstBlocks - 1));
  if (more > most - limit) more = most - limit;
  const size_t bytes = static_cast<size_t>(more) * size + (limit == 0 ? kSmallPage : 0);
  if (!hold_or_take(heap, bytes, size_class)) return false;
  bin.limit = static_cast<int16_t>(limit + more);
  bin.room += more;
  return true;
}

// The class has no block in use: its slab can go, too, when the few blocks of the bin are back.
void leave_empty_slab(Heap* heap, unsigned size_class) {
  const SlabHeader* slab = heap->current[size_class];
  if (slab == nullptr || slab->live * block_size(size_class) > kSmallPage) return;
  if (heap->rest[size_class].count != 0) return;
  const Bin& bin = heap->bins[size_class];
  unsigned count = 0;
  for (void* block = bin.blocks; block != &bin && count <= slab->live; ++count) {
    block = slab::next_free(slab_of(block), block);
    if (block == slab::kNoLink) return;  // malloc tells
  }
  if (count == slab->live) give_blocks(heap, size_class, count);
}

// The magazine has one block more than its limit, and cannot have more: the last one goes back.
void give_last(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  bin.magazine = give_some(heap, bin.magazine, 1, size_class);
  ++bin.room;
  if (bin.limit == 0) leave_empty_slab(heap, size_class);
  if (add_direct(heap, size_class)) after_direct_frees(heap, size_class);
}

}  // namespace

void open_bins(Heap* heap) {
  for (unsigned c = 0; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    bin = Bin();
    bin.blocks = bin.magazine = &bin;
    bin.multiplier = slab::kTable.row[c].multiplier;
    heap->current[c] = nullptr;
    heap->magazines[c] = Magazines();
  }
}

void* take_magazine(Heap* heap, Bin* bin) {
  const unsigned size_class = static_cast<unsigned>(bin - heap->bins);
  Magazines& magazines = heap->magazines[size_class];
  if (__builtin_expect(bin->blocks != bin, false)) bad_bin(bin->blocks, size_class);
  magazines.asked = true;
  void* first = bin->magazine;
  if (__builtin_expect(first != bin, true)) {
    bin->magazine = bin;
    bin->room = bin->limit;
  } else {
    first = full_at(heap, size_class, magazines.first + --magazines.count);
    let_go(heap, full_bytes(size_class));
  }
  bin->blocks = first;
  void* block = pop(bin);
  if (__builtin_expect(block == nullptr, false)) bad_bin(first, size_class);
  return block;
}

void magazine_full(Bin* bin) {
  Heap* heap = thread_heap;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(bin) - reinterpret_cast<uintptr_t>(heap->bins);
  if (__builtin_expect(offset >= sizeof heap->bins, false)) {
    // The child of a fork: a slab of a thread that is no more, where this one has its address. What that
    // thread held is lost to the child, and so are these blocks.
    take_all(*bin);
    return;
  }
  const unsigned size_class = static_cast<unsigned>(offset / sizeof(Bin));
  if (heap->magazines[size_class].asked && make_room(heap, size_class)) return;
  give_last(heap, size_class);
}

void after_direct_frees(Heap* heap, unsigned size_class) {
  Magazines& magazines = heap->magazines[size_class];
  size_t pause = kLeastPause;
  if (!magazines.asked) {
    flush_step(heap, size_class);
  } else {
    // What goes back after so many frees costs each of them little.
    const size_t held = count_magazines(heap, size_class) * block_size(size_class);
    if (held > kLeastPause / kFreesPerFlushed) pause = held * kFreesPerFlushed;
  }
  magazines.asked = false;
  magazines.direct = static_cast<uint16_t>(pause / 64);
}

void sweep(Heap* heap, unsigned classes, unsigned except) {
  const bool hurry = has_too_much(heap);
  for (; classes != 0; --classes) {
    if (sweep_next(heap, except, hurry)) break;
  }
  if (heap->remote_used) flush_remote(heap);
  settle(heap);
}

void flush_magazines(Heap* heap) {
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    while (heap->magazines[c].count != 0) give_oldest(heap, c);
    give_magazine(heap, c);
  }
  flush_remote(heap);
}

List open_magazine(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  return {bin.magazine, count_held(bin)};
}

List full_magazine(const Heap* heap, unsigned size_class, unsigned number) {
  const unsigned at = (heap->magazines[size_class].first + number) % kMostFull;
  return {heap->full_magazines[size_class][at], capacity_of(size_class)};
}

unsigned count_magazines(const Heap* heap, unsigned size_class) {
  return count_held(heap->bins[size_class]) + heap->magazines[size_class].count * capacity_of(size_class);
}

void empty_bin(Heap* heap, unsigned size_class) {
  while (flush_step(heap, size_class)) {
  }
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
