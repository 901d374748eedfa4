// A thread that frees much into its own slabs purges pages there, because nobody else may look at a slab's
// own list, and the thread may make no other call. It goes round its slabs, a few at each look, and adds up
// what is free in their lists. Where that is too much, with what other threads found and with what others
// freed (heap/idle.cc), it purges slabs whose free blocks seem to fill whole pages.
#include "heap/own_slabs.h"

#include <limits.h>

#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "heap/resting.h"
#include "os/region_log.h"
#include "pages/regret.h"
#include "slab/gone.h"

namespace hummock::heap {
namespace {

// Of all heaps, as their last rounds found it. Atomic, relaxed: a figure.
base::OwnLine<size_t> own_bytes;

constexpr unsigned kFewSteps = 6, kMostSteps = 24;  // of a look; a class takes one step
constexpr unsigned kStepsPerSlab = 2;
constexpr unsigned kStepsPerTry = 6;

constexpr unsigned kSoon = 32;      // frees until the next look where too much is free
constexpr unsigned kLeastPart = 2;  // of what is free, so much must be in pages that can go

// In `own_tried`, beside the count: it is none of a shared slab.
constexpr uint32_t kOwnTried = 0x80000000;

void publish(Heap* heap) {
  OwnRound& round = heap->own_round;
  __atomic_fetch_add(&own_bytes.value, round.bytes - round.bytes_before, __ATOMIC_RELAXED);
  round.bytes_before = round.bytes;
  round.bytes = 0;
  round.size_class = 0;
}

// A slab, or null: the next class has begun, or the round has ended.
SlabHeader* next_own(Heap* heap) {
  OwnRound& round = heap->own_round;
  if (SlabHeader* slab = round.next) {
    round.next = slab->next;
    return slab;
  }
  if (++round.size_class == slab::kTiny) {
    publish(heap);
    return nullptr;
  }
  round.next = heap->partial[round.size_class].front();
  return heap->current[round.size_class];
}

// Free blocks in the slab's own list and in the chain that others freed.
uint32_t count_listed(const SlabHeader* slab, uint32_t own) {
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  const uint32_t gone = (word & slab::kGone) != 0 ? slab::count_gone(slab, relaxed(slab->gone.remote)) : 0;
  const uint32_t returned = slab::count_of(word);
  return own + (returned > gone ? returned - gone : 0);
}

// A quarter of the slab is free, or half of it has come free since the last try, or it is nearly empty.
bool is_worth_a_try(SlabHeader* slab, uint32_t listed) {
  const uint32_t tried = relaxed(slab->own_tried);
  if ((tried & kOwnTried) == 0) return listed > slab->capacity / 4u;
  const uint32_t before = tried & ~kOwnTried;
  if (listed < before) set_relaxed(slab->own_tried, listed | kOwnTried);
  if (listed <= before) return false;
  return listed - before > slab->capacity / 2u || slab::has_emptied(slab, listed - before);
}

// Goes on with the heap's purge, which is under way.
size_t go_on(Heap* heap, slab::Slice slice) {
  slab::OwnPurge& purge = heap->own_purge;
  SlabHeader* slab = purge.slab();
  size_t bytes = 0;
  const bool ended = purge.go_on(&slice, &bytes);
  pages::own_regret.value.note_purged(bytes / kSmallPage);
  pages::ended_regret.value.note_purged(bytes / kSmallPage);
  if (!ended) return bytes;
  set_relaxed(slab->own_tried, purge.left() | kOwnTried);
  if (slab->full && slab::available(slab) != 0) no_longer_full(heap, slab);
  if (slab->live == 0) emptied(heap, slab);
  return bytes;
}

void purge_slice(Heap* heap) {
  os::Event event;
  const size_t bytes = go_on(heap, {kCallsPerLook, kWalkedPerLook});
  if (bytes != 0) event.log("Purge", nullptr, bytes, 0, "pages inside slabs");
}

enum class Found : uint8_t {
  nothing,
  too_little,  // of what is free is in pages that can go
  enough,      // a purge began
};

Found look_at(Heap* heap, SlabHeader* slab, bool too_much) {
  const size_t size = slab::row_of(slab).block_size;
  const uint32_t own = slab->free == slab::end_of(slab) ? 0 : slab::count_own(slab);
  heap->own_round.bytes += own * size;
  if (own * size < kSmallPage || !too_much) return Found::nothing;
  const uint32_t listed = count_listed(slab, own);
  if (listed * size < kSmallPage || !is_worth_a_try(slab, listed)) return Found::nothing;
  set_relaxed(slab->own_tried, listed | kOwnTried);
  if (!slab::seems_free(slab, listed * size / kLeastPart)) return Found::too_little;
  heap->own_purge.begin(slab);
  purge_slice(heap);
  return Found::enough;
}

}  // namespace

unsigned look_at_own(Heap* heap) {
  if (heap->own_purge.slab() != nullptr) {
    purge_slice(heap);
    return 1;
  }
  const bool too_much = is_too_much(relaxed(own_bytes.value));
  const unsigned most = too_much ? kMostSteps : kFewSteps;
  for (unsigned steps = 0; steps < most;) {
    SlabHeader* slab = next_own(heap);
    const Found found = slab == nullptr ? Found::nothing : look_at(heap, slab, too_much);
    if (found == Found::enough) return 1;
    steps += slab == nullptr ? 1 : found == Found::nothing ? kStepsPerSlab : kStepsPerTry;
  }
  return too_much ? kSoon : UINT_MAX;
}

void end_own_purge(Heap* heap) {
  if (heap->own_purge.slab() != nullptr) go_on(heap, {UINT_MAX, SIZE_MAX});
}

size_t purge_at_once(SlabHeader* slab) {
  slab::Slice slice = {UINT_MAX, SIZE_MAX};
  size_t bytes = 0;
  thread_heap->own_purge.begin(slab);
  thread_heap->own_purge.go_on(&slice, &bytes);
  return bytes;
}

size_t purge_all_own(Heap* heap) {
  end_own_purge(heap);
  OwnRound& round = heap->own_round;
  round.next = nullptr;
  round.size_class = 0;
  round.bytes = 0;
  size_t bytes = 0;
  do {
    SlabHeader* slab = next_own(heap);
    if (slab == nullptr) continue;
    bytes += purge_at_once(slab);
    if (slab->full && slab::available(slab) != 0) no_longer_full(heap, slab);
    if (slab->live == 0) emptied(heap, slab);
  } while (round.size_class != 0);
  return bytes;
}

void end_own_round(Heap* heap) {
  heap->own_round.next = nullptr;
  heap->own_round.bytes = 0;
  publish(heap);
}

void reset_own(const Heap* heap) {
  set_relaxed(own_bytes.value, heap != nullptr ? heap->own_round.bytes_before : 0);
}

}  // namespace hummock::heap
