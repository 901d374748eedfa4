#include "heap/idle.h"

#include <limits.h>

#include "base/options.h"
#include "heap/heap_pool.h"
#include "heap/refill.h"
#include "heap/remote.h"
#include "heap/resting.h"
#include "heap/slow_time.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/regret.h"
#include "slab/gone.h"

namespace hummock::heap {

Idle idle;
bool emptied_wait;
SlowTimes slow_times;
Observer observer = {&observer.seen, 0, nullptr, nullptr};

namespace {

constexpr uint64_t kStepMs = 1;
constexpr unsigned kHeadersPerTick = 96;
constexpr unsigned kHeadersPerLook = 128;
constexpr size_t kLooksPerRound = 32;     // of frees
constexpr unsigned kSlabsPerSlice = 128;  // of a trim
constexpr uint32_t kLeastBytes = kSmallPage;
// What one call may do. The looks of a round, which are less urgent, take the least slice.
static_assert(kWalkedPerLook >= slab::kLeastSlice);
// These take as long as a walk along so many blocks.
constexpr size_t kBlocksPerPurge = 16;  // until its first block
constexpr size_t kBlocksPerHeader = 2;
// In `seen`, beside the count:
constexpr uint16_t kTried = 0x8000;   // with this count there is nothing more to purge
constexpr uint16_t kTicked = 0x4000;  // a round of ticks saw it

// A round looks at all headers, some at each step. Ticks make rounds with a pause between two; frees pay for
// rounds of their own, without a pause. A slab is idle if two rounds of one kind find the same number of
// blocks that others freed there.
os::Lock<os::Rank::idle> idle_lock;  // at most one thread steps
struct Round {
  pages::Headers headers;
  bool under_way;
};
// The next nine are guarded by idle_lock.
constexpr unsigned kMostEmptied = 1 << 15;
SlabHeader* emptied_slabs[kMostEmptied];  // a ring of slabs that were emptied; they may have ended since
unsigned next_emptied, count_emptied;     // where it begins, and how many they are
Round by_ticks, by_frees;
bool for_frees;      // the purge under way is one that frees asked for
uint16_t tried;      // the count with which it began
bool again;          // this round of ticks saw something that is worth another one
bool at_once;        // this round of ticks purges at the first look
size_t resting;      // bytes that this round of frees saw and may purge. Atomic, relaxed.
size_t rested;       // the same in the last round. Atomic, relaxed.
bool trim_asked;     // the next round of ticks purges at the first look. Atomic, relaxed: a wish
uint64_t next_step;  // ms, of ticks; atomic, relaxed: a hint

// Racy: the slab is not ours yet. slab::purge looks again.
// The bytes of so many blocks; 0 if they are not worth a purge, or there is nothing more to purge.
// Where nobody freed anything the owner's line stays untouched: the owner is about to write to it.
__attribute__((no_sanitize("thread"))) size_t worth(const SlabHeader* slab, uint32_t count) {
  if (count == 0 || slab->kind != Kind::slab || slab->size_class == slab::kTiny) return 0;
  const size_t bytes = size_t{count} * slab::kTable.row[slab->size_class].block_size;
  if (bytes < kLeastBytes || __atomic_load_n(&slab->gone.seen, __ATOMIC_RELAXED) == (count | kTried))
    return 0;
  return bytes;
}

// There was nothing more to purge with somewhat fewer blocks: less than an eighth of the slab has come back
// since, and the slab is not nearly empty. Where frees come in any order, each walk would be in vain.
bool is_too_early(const SlabHeader* slab, uint32_t count) {
  const uint16_t seen = __atomic_load_n(&slab->gone.seen, __ATOMIC_RELAXED);
  if ((seen & kTried) == 0) return false;
  const uint32_t more = count - (seen & slab::kCountMask);
  return more < slab->capacity / 8u + 1 && !slab::has_emptied(slab, more);
}

// Has a trim anything to do here?
bool is_candidate(const SlabHeader* slab) {
  return worth(slab, slab::count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED))) != 0;
}

enum class Look : uint8_t {
  by_time,
  after_frees,  // purges only what exceeds a bound, because the owner may be about to look
  emptied,      // the bound is exceeded, and the slab is nearly empty
  at_once,
};

// More rests than may, of what rounds have seen that they can purge.
bool rests_much() {
  const size_t last = relaxed(rested), now = relaxed(resting);
  return (last > now ? last : now) > most_resting();
}

// Two rounds: the first sees a slab, the second purges it. Both end before the bound is exceeded, unless
// several threads free.
constexpr size_t kFreedMeanwhile = 2 * kLooksPerRound * kFreedPerLook;

// May what others freed soon be too much? If not, no header is looked at. The count has blocks that no look
// can purge, too.
bool returned_much() {
  return relaxed(slab::returned_bytes.value) > static_cast<ptrdiff_t>(most_resting() - kFreedMeanwhile);
}

// Purging takes longer than freeing. So several threads that free wait for each other's looks, if far too
// much waits.
bool must_look() {
  return relaxed(slab::returned_bytes.value) > static_cast<ptrdiff_t>(2 * most_resting());
}

// Notes the count, and who saw it. True: a round of this kind saw the same count before, and the slab was not
// drained since.
bool seen_before(SlabHeader* slab, uint16_t count, Look why) {
  const uint16_t seen = __atomic_load_n(&slab->gone.seen, __ATOMIC_RELAXED);
  const uint16_t mark = why == Look::by_time ? kTicked : uint16_t{0};
  if (seen == (count | mark) || seen == (count | kTicked)) return true;
  __atomic_store_n(&slab->gone.seen, static_cast<uint16_t>(count | mark), __ATOMIC_RELAXED);
  return false;
}

using slab::Slice;

void charge(Slice* slice, size_t blocks) {
  slice->blocks -= slice->blocks < blocks ? slice->blocks : blocks;
}

// Goes on with the purge under way, if there is one.
size_t go_on(Slice* slice) {
  if (!slab::purge_is_under_way()) return 0;
  size_t bytes = 0;
  slab::Held held;
  const bool done = slab::go_on_purging(slice, &held, &bytes);
  if (for_frees) pages::slab_regret.value.note_purged(bytes / kSmallPage);
  if (!done) return bytes;
  __atomic_store_n(&held.slab->gone.seen, static_cast<uint16_t>(tried | kTried), __ATOMIC_RELAXED);
  hand_over(held.slab, held.first, held.last, held.count, held.gone);
  return bytes;
}

// No purge is under way. Returns the bytes that it purged; it may leave a purge under way.
size_t look_at(SlabHeader* slab, Look why, Slice* slice) {
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  const auto count = static_cast<uint16_t>(slab::count_of(word));
  const size_t freed = worth(slab, count);
  if (freed == 0) return 0;
  if (why == Look::after_frees && is_too_early(slab, count)) return 0;
  if (why == Look::after_frees) set_relaxed(resting, resting + freed);
  if (why < Look::emptied && !seen_before(slab, count, why)) {
    again = again || why == Look::by_time;
    return 0;
  }
  if (why == Look::after_frees && !rests_much()) return 0;
  if (!slab::begin_purge(slab, word)) return 0;
  charge(slice, kBlocksPerPurge);
  for_frees = why == Look::after_frees || why == Look::emptied;
  tried = count;
  return go_on(slice);
}

// Looks at the next headers of a round. Returns the bytes that it purged.
size_t step(Round& round, size_t headers, Look why, Slice* slice) {
  size_t bytes = go_on(slice);
  if (!round.under_way) round = {pages::Headers(), true};
  for (; headers != 0 && !slice->is_spent(); --headers) {
    SlabHeader* slab = round.headers.next();
    if (slab == nullptr) {
      round.under_way = false;
      break;
    }
    charge(slice, kBlocksPerHeader);
    bytes += look_at(slab, why, slice);
  }
  return bytes;
}

void begin_ticks() {
  again = false;
  at_once = __atomic_exchange_n(&trim_asked, false, __ATOMIC_RELAXED);
  set_relaxed(idle, Idle::looking);
}

void end_ticks() {
  Idle expected = Idle::looking;
  Idle next = again || any_parked() ? Idle::freed : Idle::nothing;
  __atomic_compare_exchange(&idle, &expected, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

size_t step_by_ticks(uint64_t now, Slice* slice) {
  if (!by_ticks.under_way) begin_ticks();
  const size_t bytes = step(by_ticks, kHeadersPerTick, at_once ? Look::at_once : Look::by_time, slice);
  if (!by_ticks.under_way) end_ticks();
  // Where something was found, the next call goes on.
  const uint64_t pause = static_cast<uint64_t>(options::values.decay_ms) / 8;
  const bool more = bytes != 0 || slab::purge_is_under_way();
  const uint64_t wait = !by_ticks.under_way ? pause : more ? 0 : kStepMs;
  __atomic_store_n(&next_step, now + wait, __ATOMIC_RELAXED);
  return bytes;
}

size_t step_by_frees(Slice* slice) {
  const size_t share = relaxed(pages::used_slots) / kLooksPerRound + 1;
  const size_t headers = share < kHeadersPerLook ? share : kHeadersPerLook;
  const size_t bytes = step(by_frees, headers, Look::after_frees, slice);
  if (!by_frees.under_way) {
    set_relaxed(rested, resting);
    set_relaxed(resting, size_t{0});
  }
  return bytes;
}

void log_purge(os::Event& event, size_t bytes) {
  if (bytes != 0) event.log("Purge", nullptr, bytes, 0, "pages inside slabs");
}

__attribute__((noinline)) void tick_idle(uint64_t now, unsigned* calls) {
  if (is_asked()) observer.serve(calls);
  if (*calls < kCallsPerLook || now < __atomic_load_n(&next_step, __ATOMIC_RELAXED) || !idle_lock.try_lock())
    return;
  Slice slice = {kCallsPerLook, slab::kLeastSlice};
  os::Event event;
  const size_t bytes = step_by_ticks(now, &slice);
  idle_lock.unlock();
  *calls -= kCallsPerLook - slice.calls;
  log_purge(event, bytes);
}

// False: another thread has the lock, and there is no need to wait for it.
bool lock_to_purge() {
  if (!must_look()) return idle_lock.try_lock();
  idle_lock.lock();
  return true;
}

}  // namespace

void note_emptied(SlabHeader* slab) {
  if (!lock_to_purge()) return;
  if (count_emptied < kMostEmptied) {
    emptied_slabs[(next_emptied + count_emptied++) % kMostEmptied] = slab;
    set_relaxed(emptied_wait, true);
  }
  idle_lock.unlock();
}

void purge_emptied() {
  if (!lock_to_purge()) return;
  Slice slice = {kCallsPerLook, kWalkedPerLook};
  os::Event event;
  size_t bytes = go_on(&slice);
  while (count_emptied != 0 && !slice.is_spent()) {
    SlabHeader* slab = emptied_slabs[next_emptied];
    next_emptied = (next_emptied + 1) % kMostEmptied;
    --count_emptied;
    charge(&slice, kBlocksPerHeader);
    bytes += look_at(slab, Look::emptied, &slice);
  }
  set_relaxed(emptied_wait, count_emptied != 0 || (for_frees && slab::purge_is_under_way()));
  idle_lock.unlock();
  log_purge(event, bytes);
}

bool look_after_frees() {
  if (options::values.decay_ms < 0 || !returned_much()) return false;
  if (!idle_lock.try_lock()) return false;
  Slice slice = {kCallsPerLook, slab::kLeastSlice};
  os::Event event;
  const size_t bytes = step_by_frees(&slice);
  idle_lock.unlock();
  log_purge(event, bytes);
  return slice.is_spent();
}

bool tick(unsigned calls) {
  if (options::values.decay_ms < 0) {
    pages::set_behind(false);
    if (is_asked()) observer.serve(&calls);
    return false;
  }
  const uint64_t now = os::now_ms();
  if (relaxed(idle) != Idle::nothing) tick_idle(now, &calls);
  if (any_parked()) tick_parked(now);
  const bool timed = pages::purge_due(now, &calls);
  if (timed && os::memory_line_due()) want_figures();
  if (timed && is_asked()) observer.serve(&calls);
  if (calls == 0) pages::set_behind(true);  // this call of the program makes no more, the next goes on
  return timed;
}

namespace {

// Trims share one walk. A thread that finds one under way leaves a wish and does not wait: the thread that
// walks goes round once more for all wishes.
constexpr uint8_t kNoWalk = 0, kUnderWay = 1, kWished = 2;
uint8_t walk;  // atomic

constexpr unsigned kMostRounds = 2;

// True: this thread has the walk now.
bool begin_walk() {
  for (;;) {
    uint8_t none = kNoWalk;
    // acquire: pairs with the release of end_walk(), for what the last walk left in the headers.
    if (__atomic_compare_exchange_n(&walk, &none, kUnderWay, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return true;
    if (none == kWished) return false;
    uint8_t under_way = kUnderWay;
    // release: pairs with the acquire in purge_idle(), so that the next round sees what we freed before.
    if (__atomic_compare_exchange_n(&walk, &under_way, kWished, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      return false;
    if (under_way == kWished) return false;
  }
}

// False: somebody wished for another round meanwhile.
bool end_walk() {
  uint8_t mine = kUnderWay;
  return __atomic_compare_exchange_n(&walk, &mine, kNoWalk, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void end_purge_under_way() {
  os::LockGuard guard(idle_lock);
  Slice slice = {UINT_MAX, SIZE_MAX};
  go_on(&slice);
}

// Takes the lock for a slice at a time, because a fork waits for it, and for the walk only where there is
// something to do.
void walk_all() {
  end_purge_under_way();
  pages::Headers all;
  SlabHeader* slab = all.next();
  while (slab != nullptr) {
    if (!is_candidate(slab)) {
      slab = all.next();
      continue;
    }
    os::LockGuard guard(idle_lock);
    for (unsigned i = 0; i < kSlabsPerSlice && slab != nullptr; ++i, slab = all.next()) {
      Slice slice = {UINT_MAX, SIZE_MAX};
      go_on(&slice);
      look_at(slab, Look::at_once, &slice);
    }
  }
}

}  // namespace

void purge_idle() {
  if (!begin_walk()) return;
  for (unsigned rounds = 1; walk_all(), !end_walk(); ++rounds) {
    if (rounds == kMostRounds) {  // the rest is for the ticks
      note_freed();
      __atomic_store_n(&walk, kNoWalk, __ATOMIC_RELEASE);
      return;
    }
    // acquire: pairs with the release of begin_walk() in the thread that wished.
    __atomic_exchange_n(&walk, kUnderWay, __ATOMIC_ACQUIRE);
  }
}

bool ask_trim() {
  if (options::values.decay_ms < 0) return false;
  set_relaxed(trim_asked, true);
  set_relaxed(idle, Idle::freed);
  __atomic_store_n(&next_step, 0, __ATOMIC_RELAXED);
  pages::ask_trim(os::now_ms());
  return true;
}

void idle_at_fork(os::ForkStep step) {
  // The thread that walked is not in the child.
  if (step == os::ForkStep::in_child) __atomic_store_n(&walk, kNoWalk, __ATOMIC_RELAXED);
  idle_lock.at_fork(step);
}

}  // namespace hummock::heap
