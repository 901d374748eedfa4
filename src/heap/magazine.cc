// Magazines: a thread's cached blocks, by class. malloc takes the block that was freed last, while it is in
// the processor's caches.
//
// A magazine begins with no room. It doubles while the class is asked for and the thread may hold more
// (heap/allowance.h), if need be at the cost of other classes. If it cannot grow, its older half is flushed
// to the slabs. If malloc has not run out of blocks since then, each block that is freed goes to its slab at
// once. After many such frees, all that the class holds is flushed.
//
// So a heap has two kinds of slabs: those whose frees go to the magazine (owner = heap), and *direct* ones,
// whose frees go straight to their own list (owner = heap + kDirect). A slab becomes the first kind when
// blocks are taken from it, and direct when a single block of it had to go back. So a thread that frees much
// more than it allocates flushes few blocks of each slab, and keeps few slabs from becoming empty. A class
// that was refused room and has next to none stays with direct slabs until the next look.
//
// free has seen that each block is a block's start and was not free. That nobody wrote to it since is checked
// when it leaves the magazine.
#include "heap/magazine.h"

#include <limits.h>

#include "heap/allowance.h"
#include "heap/diagnose.h"
#include "heap/own_slabs.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "heap/remote.h"

namespace hummock::heap {
namespace {

using slab::List;

constexpr size_t kMostBytes = 512 << 10;  // of a magazine
constexpr unsigned kMostBlocks = 1024;
constexpr unsigned kLeastBlocks = 2;
constexpr size_t kFirstBytes = 2 << 10;  // its first room, beyond the blocks that need it
constexpr unsigned kFirstBlocks = 8;
constexpr unsigned kMostFlushed = 80;  // blocks in one step; a call makes at most two steps
// A class is flushed, or asks for room again, after this many frees straight to slabs for each block that it
// holds.
constexpr size_t kFreesPerFlushed = 4;
constexpr size_t kLeastPause = 16 << 10;  // bytes
constexpr size_t kLeastFrees = 8;         // the same for large blocks, which reach that at once
constexpr unsigned kBlocksPerLook = 40;

constexpr unsigned in_bounds(size_t blocks, unsigned least, unsigned most) {
  return blocks < least ? least : blocks > most ? most : static_cast<unsigned>(blocks);
}

size_t block_size(unsigned size_class) {
  return slab::kTable.row[size_class].block_size;
}
unsigned most_blocks(unsigned size_class) {
  return in_bounds(kMostBytes / block_size(size_class), kLeastBlocks, kMostBlocks);
}

SlabHeader* slab_of(const void* block) {
  SlabHeader* slab = pages::header_of(block);
  return slab - slab->back;
}

// Empties the magazine.
List take_all(Bin& bin) {
  const List list = {bin.blocks, count_held(bin)};
  bin.blocks = &bin;
  bin.room = bin.limit;
  return list;
}

// A run: consecutive blocks of a list that are in one slab.
struct Run {
  SlabHeader* slab;
  void* first;
  void* last;
  void* next;  // the block after the last
  unsigned count;
};

// Is `block` in the slab, as `known` is?
bool is_in(const SlabHeader* slab, const void* known, const void* block) {
  const uintptr_t apart = reinterpret_cast<uintptr_t>(known) ^ reinterpret_cast<uintptr_t>(block);
  return apart < kSlotSize || slab_of(block) == slab;
}

// The run ends at a block of another slab, after `most` blocks, or with the list.
Run run_from(SlabHeader* slab, void* first, unsigned most, unsigned size_class, const Bin* end) {
  Run run = {slab, first, first, first, 0};
  do {
    run.last = run.next;
    // The block stays marked as free all the while.
    run.next = slab::next_free(run.slab, run.last);
    if (__builtin_expect(run.next == slab::kNoLink, false)) bad_bin(run.last, size_class);
    ++run.count;
  } while (run.count != most && run.next != end && is_in(run.slab, run.last, run.next));
  return run;
}

// Puts them into the slab's own list. `direct`: so do the slab's next frees.
void give_run(Heap* heap, const Run& run, bool direct) {
  SlabHeader* slab = run.slab;
  if (direct && owner_of(slab) == reinterpret_cast<uintptr_t>(heap)) make_direct(heap, slab);
  if (slab->full) no_longer_full(heap, slab);
  slab::put_run(slab, run.first, run.last, run.count);
  if (slab->live == 0) emptied(heap, slab);
}

// Returns the first blocks of a list to their slabs, at most so many. Returns what is left of the list.
void* give_some(Heap* heap, void* first, unsigned most, unsigned size_class, bool direct = false) {
  const Bin* end = &heap->bins[size_class];
  while (most != 0 && first != end) {
    SlabHeader* slab = slab_of(first);
    const bool mine = (owner_of(slab) & ~kDirect) == reinterpret_cast<uintptr_t>(heap);
    const Run run = run_from(slab, first, mine ? most : 1, size_class, end);
    first = run.next;
    most -= run.count;
    mine ? give_run(heap, run, direct) : give_foreign(heap, slab, run.first);
  }
  return first;
}

size_t room_bytes(const Bin& bin, unsigned size_class) {
  return bin.limit == 0 ? 0 : kSmallPage + static_cast<size_t>(bin.limit) * block_size(size_class);
}

// Takes empty room for so many blocks from the magazine.
void take_room(Heap* heap, unsigned size_class, int32_t blocks) {
  Bin& bin = heap->bins[size_class];
  const size_t before = room_bytes(bin, size_class);
  bin.room -= blocks;
  bin.limit = static_cast<int16_t>(bin.limit - blocks);
  let_go(heap, before - room_bytes(bin, size_class));
}

// Flushes at most so many of the magazine's blocks, the last freed first.
void give_blocks(Heap* heap, unsigned size_class, unsigned most) {
  Bin& bin = heap->bins[size_class];
  const unsigned held = count_held(bin);
  if (most > held) most = held;
  bin.blocks = give_some(heap, bin.blocks, most, size_class);
  bin.room += static_cast<int32_t>(most);
}

// One step of a flush. It takes the room, too, or frees would fill it again between steps. False: nothing is
// left.
bool flush_step(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  if (bin.blocks == &bin && heap->rest[size_class].count != 0) put_list(&bin, take_rest(heap, size_class));
  if (bin.limit == 0 && bin.blocks == &bin) return false;
  bin.asked = false;
  give_blocks(heap, size_class, kMostFlushed);
  if (bin.room > 0) take_room(heap, size_class, bin.room);
  return true;
}

bool holds_any(const Heap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  return bin.limit != 0 || bin.blocks != &bin || heap->rest[size_class].count != 0;
}

// The class in the set `holding` that comes next after the hand, or 0.
unsigned next_holding(const Heap* heap) {
  const unsigned from = heap->hand + 1u;
  const unsigned later = heap->holding.first_in(from, slab::kClasses);
  return later != 0 ? later : heap->holding.first_in(0, from);
}

// Looks at the next class that holds something, and flushes a step of it if nobody touched it since the last
// time, or in a hurry. False: it flushed nothing.
bool sweep_next(Heap* heap, unsigned except, bool hurry = false) {
  const unsigned next = next_holding(heap);
  heap->hand = static_cast<uint8_t>(next);
  if (!holds_any(heap, next)) {
    heap->holding.remove(next);
    return false;
  }
  if (next == except) return false;
  Bin& bin = heap->bins[next];
  const uint32_t now = first_blocks(heap, next);
  const bool used = bin.seen != now;
  bin.seen = now;
  return (!used || hurry) && flush_step(heap, next);
}

constexpr unsigned kClassesAsked = 5;

// If the thread may not hold more, the next classes give what nobody uses. To a class that has room already
// they also give half of their empty room. A class without room does not get that: otherwise a few blocks of
// each of many classes would stay, and each would keep a slab.
bool hold_or_take(Heap* heap, size_t bytes, unsigned size_class) {
  if (hold(heap, bytes)) return true;
  const bool grows = heap->bins[size_class].limit != 0;
  const size_t before = heap->held;
  for (unsigned left = kClassesAsked; left != 0 && before - heap->held < bytes; --left) {
    if (sweep_next(heap, size_class)) break;
    const int32_t room = heap->bins[heap->hand].room;
    if (grows && heap->hand != size_class && room > 0) take_room(heap, heap->hand, (room + 1) / 2);
  }
  return hold(heap, bytes);
}

// The magazine has more blocks than room. Gives it more; false if it may not have more.
bool make_room(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  const unsigned limit = static_cast<unsigned>(bin.limit);
  const unsigned most = most_blocks(size_class);
  const size_t size = block_size(size_class);
  const unsigned needed = count_held(bin);
  unsigned wanted = limit == 0 ? needed + in_bounds(kFirstBytes / size, 0, kFirstBlocks) : 2 * limit;
  if (wanted < needed) wanted = needed;
  if (wanted > most) wanted = most;
  if (wanted < needed) return false;
  if (!hold_or_take(heap, (wanted - limit) * size + (limit == 0 ? kSmallPage : 0), size_class)) return false;
  heap->holding.add(size_class);
  bin.limit = static_cast<int16_t>(wanted);
  bin.room += static_cast<int32_t>(wanted - limit);
  return true;
}

// Flushes the older blocks, and keeps half of what may stay, or more if that is too much for one call.
void give_older(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  const unsigned half = static_cast<unsigned>(bin.limit + 1) / 2;
  const unsigned held = count_held(bin);
  const unsigned kept = held - half > kMostFlushed ? held - kMostFlushed : half;
  void* last = bin.blocks;
  for (unsigned left = kept - 1; left != 0; --left) {
    last = slab::next_of(last);
    if (__builtin_expect(last == slab::kNoLink, false)) bad_bin(bin.blocks, size_class);
  }
  const SlabHeader* slab = slab_of(last);
  void* older = slab::next_free(slab, last);
  if (__builtin_expect(older == slab::kNoLink, false)) bad_bin(last, size_class);
  const unsigned count = held - kept;
  void* left = give_some(heap, older, count, size_class);
  slab::link_free(slab, last, left);
  bin.room += static_cast<int32_t>(count);
}

// If the program has no block of the class, flushes the few blocks of the magazine so that the slab can end.
void leave_empty_slab(Heap* heap, unsigned size_class) {
  const SlabHeader* slab = heap->current[size_class];
  if (slab == nullptr || heap->rest[size_class].count != 0) return;
  const unsigned held = count_held(heap->bins[size_class]);
  const bool few = held <= kFirstBlocks || held * block_size(size_class) <= kSmallPage;
  if (few && slab->live == held) give_blocks(heap, size_class, held);
}

// Returns the last block to its slab, and makes the slab direct. Then looks or ticks.
void give_last(Heap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  bin.blocks = give_some(heap, bin.blocks, 1, size_class, true);
  ++bin.room;
  if (bin.limit == 0) leave_empty_slab(heap, size_class);
  add_direct(&bin) ? after_direct_frees(heap, &bin) : tick_if_behind();
}

}  // namespace

void open_bins(Heap* heap) {
  for (unsigned c = 0; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    bin = Bin();
    bin.blocks = &bin;
    bin.multiplier = slab::kTable.row[c].multiplier;
    heap->current[c] = nullptr;
  }
}

void magazine_full(Bin* bin) {
  Heap* heap = thread_heap;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(bin) - reinterpret_cast<uintptr_t>(heap->bins);
  if (__builtin_expect(offset >= sizeof heap->bins, false)) {
    // In the child of a fork: the slab's thread no longer exists, and this thread has its address. What that
    // thread held is lost to the child, and so are these blocks.
    take_all(*bin);
    return;
  }
  const unsigned size_class = static_cast<unsigned>(offset / sizeof(Bin));
  if (!bin->asked) return give_last(heap, size_class);
  if (!bin->refused && make_room(heap, size_class)) return;
  bin->refused = true;
  bin->asked = false;
  if (is_direct(*bin)) return give_last(heap, size_class);
  give_older(heap, size_class);
  tick_if_behind();
}

void after_direct_frees(Heap* heap, Bin* of) {
  Bin& bin = *of;
  const auto size_class = static_cast<unsigned>(of - heap->bins);
  size_t pause = kLeastPause / block_size(size_class);
  if (pause < kLeastFrees) pause = kLeastFrees;
  const bool flushed = !bin.asked && flush_step(heap, size_class);
  if (bin.asked) {
    // So many frees share the cost of the next flush or refusal.
    const size_t most = size_t{count_held(bin)} * kFreesPerFlushed;
    if (most > pause) pause = most;
    if (kBlocksPerLook > pause) pause = kBlocksPerLook;
  }
  bin.asked = bin.refused = false;
  // One call looks at its own slabs, or flushes and ticks: a look may make as many system calls as a tick.
  const bool looks = !flushed && !pages::is_behind();
  const unsigned most = looks ? look_at_own(heap) : UINT_MAX;
  if (pause > most) pause = most;
  bin.direct = static_cast<uint16_t>(pause);
  if (!looks) tick_if_behind();
}

void sweep(Heap* heap, unsigned classes, unsigned except) {
  const bool hurry = has_too_much(heap);
  for (; classes != 0; --classes) {
    if (sweep_next(heap, except, hurry)) break;
  }
  flush_some_remote(heap);
  settle(heap);
}

bool flush_next(Heap* heap) {
  while (next_holding(heap) != 0) {
    if (sweep_next(heap, 0, true)) return true;
  }
  return false;
}

void flush_magazines(Heap* heap) {
  for (unsigned c = 1; c < slab::kClasses; ++c) {
    Bin& bin = heap->bins[c];
    give_blocks(heap, c, count_held(bin));
    if (bin.room > 0) take_room(heap, c, bin.room);
  }
  flush_remote(heap);
}

void empty_bin(Heap* heap, unsigned size_class) {
  while (flush_step(heap, size_class)) {
  }
}

void* pop_tiny(Bin* bin) {
  void* block = bin->blocks;
  if (block == bin) return nullptr;
  const uint64_t number = slab::tiny_next(block);
  if (number > slab::kTinyEnd) return nullptr;
  bin->blocks = number == slab::kTinyEnd ? bin : slab::tiny_in_slab_of(block, number);
  slab::tiny_word(block) = 0;
  ++bin->room;
  return block;
}

}  // namespace hummock::heap
