#include "heap/idle.h"

#include "base/options.h"
#include "heap/refill.h"
#include "heap/slow_time.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/regret.h"
#include "slab/gone.h"

namespace hummock::heap {

Idle idle;
SlowTimes slow_times;
Observer observer = {&observer.seen, 0, nullptr, nullptr};

namespace {

constexpr uint64_t kStepMs = 1;
constexpr unsigned kHeadersPerStep = 192;
constexpr unsigned kSlabsPerStep = 3;  // slabs with purged pages
constexpr size_t kLooksPerRound = 32;
constexpr unsigned kSlabsPerSlice = 128;  // of a trim
constexpr uint32_t kLeastBytes = kSmallPage;
constexpr uint16_t kTried = 0x8000;  // in `seen`: with this count there is nothing more to purge

// A round looks at all headers, some at each step. A slab is idle if two rounds find the same number of
// blocks that others freed there.
os::Lock<os::Rank::idle> idle_lock;  // at most one thread steps
// The next six are guarded by idle_lock.
pages::Headers round;
bool in_round;
bool again;          // this round saw something that is worth another one
size_t resting;      // bytes that this round saw, freed by others and not drained
size_t rested;       // the same in the last round
bool at_once;        // this round purges at the first look
bool trim_asked;     // the next round does. Atomic, relaxed: a wish
uint64_t next_step;  // ms; atomic, relaxed: a hint

// Racy: the slab is not ours yet. can_purge looks again.
// The bytes of so many blocks; 0 if they are not worth a purge.
__attribute__((no_sanitize("thread"))) size_t worth(const SlabHeader* slab, uint32_t count) {
  if (slab->kind != Kind::slab) return 0;
  const size_t bytes = size_t{count} * slab::kTable.row[slab->size_class].block_size;
  return bytes >= kLeastBytes ? bytes : 0;
}

// Has a trim anything to do here? Racy likewise.
bool is_candidate(const SlabHeader* slab) {
  const uint32_t count = slab::count_of(__atomic_load_n(&slab->remote, __ATOMIC_RELAXED));
  if (worth(slab, count) == 0) return false;
  return __atomic_load_n(&slab->gone.seen, __ATOMIC_RELAXED) != (count | kTried);
}

enum class Look : uint8_t {
  by_time,
  after_frees,  // purges only what exceeds a bound, because the owner may be about to look
  at_once,
};

constexpr size_t kMostRegret = 32 << 20;

bool rests_much() {
  const size_t regret = pages::slab_regret.value.bytes();
  const size_t bound =
      pages::bound_by_use(size_t{6} << 20, 16) + (regret < kMostRegret ? regret : kMostRegret);
  return rested > bound || resting > bound;
}

// Returns the bytes that it purged.
size_t look_at(SlabHeader* slab, Look why) {
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_RELAXED);
  const uint32_t count = slab::count_of(word);
  const size_t freed = worth(slab, count);
  if (freed == 0) return 0;
  const uint16_t seen = __atomic_load_n(&slab->gone.seen, __ATOMIC_RELAXED);
  if (seen == (count | kTried)) return 0;
  if (why != Look::at_once) resting += freed;
  if (seen != count && why != Look::at_once) {
    __atomic_store_n(&slab->gone.seen, static_cast<uint16_t>(count), __ATOMIC_RELAXED);
    again = true;
    return 0;
  }
  if (why == Look::after_frees && !rests_much()) return 0;
  slab::Held held;
  if (!slab::take_back(slab, word, &held)) return 0;
  const size_t bytes = slab::purge(slab, &held);
  if (why == Look::after_frees) pages::slab_regret.value.note_purged(bytes / kSmallPage);
  __atomic_store_n(&slab->gone.seen, static_cast<uint16_t>(count | kTried), __ATOMIC_RELAXED);
  hand_over(slab, held.first, held.last, held.count, held.gone);
  return bytes;
}

void end_round(uint64_t now, uint64_t pause) {
  in_round = false;
  rested = resting;
  resting = 0;
  Idle expected = Idle::looking;
  Idle next = again ? Idle::freed : Idle::nothing;
  __atomic_compare_exchange(&idle, &expected, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  __atomic_store_n(&next_step, now + pause, __ATOMIC_RELAXED);
}

// Returns the bytes that it purged.
size_t step(size_t headers, Look why, uint64_t now, uint64_t pause) {
  if (!in_round) {
    round = pages::Headers();
    in_round = true;
    again = false;
    at_once = __atomic_exchange_n(&trim_asked, false, __ATOMIC_RELAXED);
    set_relaxed(idle, Idle::looking);
  }
  size_t bytes = 0;
  unsigned slabs = 0;
  for (; headers != 0 && slabs < kSlabsPerStep; --headers) {
    SlabHeader* slab = round.next();
    if (slab == nullptr) {
      end_round(now, pause);
      break;
    }
    const size_t gone = look_at(slab, at_once ? Look::at_once : why);
    slabs += gone != 0;
    bytes += gone;
  }
  // Where something was found, the next call goes on.
  if (in_round) __atomic_store_n(&next_step, bytes != 0 ? now : now + kStepMs, __ATOMIC_RELAXED);
  return bytes;
}

// Called with the lock held, which it releases.
void look(size_t headers, Look why, uint64_t now) {
  os::Event event;
  const size_t bytes = step(headers, why, now, static_cast<uint64_t>(options::values.decay_ms) / 8);
  idle_lock.unlock();
  if (bytes != 0) event.log("Purge", nullptr, bytes, 0, "pages inside slabs");
}

__attribute__((noinline)) void tick_idle(uint64_t now) {
  if (is_asked()) observer.serve();
  if (now < __atomic_load_n(&next_step, __ATOMIC_RELAXED) || !idle_lock.try_lock()) return;
  look(kHeadersPerStep, Look::by_time, now);
}

}  // namespace

void look_after_frees() {
  if (options::values.decay_ms < 0 || !idle_lock.try_lock()) return;
  look(relaxed(pages::used_slots) / kLooksPerRound + 1, Look::after_frees, os::now_ms());
}

bool tick() {
  if (options::values.decay_ms < 0) {
    if (is_asked()) observer.serve();
    return false;
  }
  const uint64_t now = os::now_ms();
  if (relaxed(idle) != Idle::nothing) tick_idle(now);
  const bool timed = pages::tick(now);
  if (timed && os::memory_line_due()) want_figures();
  if (timed && is_asked()) observer.serve();
  return timed;
}

namespace {

// Trims share one walk. A thread that finds one under way leaves a wish and does not wait: the thread that
// walks goes round once more for all wishes.
enum class Walk : uint8_t { none, under_way, wished };
Walk walk;  // atomic

constexpr unsigned kMostRounds = 2;

// True: this thread has the walk now.
bool begin_walk() {
  for (;;) {
    Walk none = Walk::none;
    // acquire: pairs with the release of end_walk(), for what the last walk left in the headers.
    if (__atomic_compare_exchange_n(&walk, &none, Walk::under_way, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return true;
    if (none == Walk::wished) return false;
    Walk under_way = Walk::under_way;
    // release: pairs with the acquire in purge_idle(), so that the next round sees what we freed before.
    if (__atomic_compare_exchange_n(&walk, &under_way, Walk::wished, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
      return false;
    if (under_way == Walk::wished) return false;
  }
}

// False: somebody wished for another round meanwhile.
bool end_walk() {
  Walk mine = Walk::under_way;
  return __atomic_compare_exchange_n(&walk, &mine, Walk::none, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

// Takes the lock only where there is something to do, and for a slice at a time, because a fork waits for it.
void walk_all() {
  pages::Headers all;
  SlabHeader* slab = all.next();
  while (slab != nullptr) {
    if (!is_candidate(slab)) {
      slab = all.next();
      continue;
    }
    os::LockGuard guard(idle_lock);
    for (unsigned i = 0; i < kSlabsPerSlice && slab != nullptr; ++i, slab = all.next())
      look_at(slab, Look::at_once);
  }
}

}  // namespace

void purge_idle() {
  if (!begin_walk()) return;
  for (unsigned rounds = 1; walk_all(), !end_walk(); ++rounds) {
    if (rounds == kMostRounds) {  // the rest is for the ticks
      note_freed();
      __atomic_store_n(&walk, Walk::none, __ATOMIC_RELEASE);
      return;
    }
    // acquire: pairs with the release of begin_walk() in the thread that wished.
    __atomic_exchange_n(&walk, Walk::under_way, __ATOMIC_ACQUIRE);
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

void lock_idle() {
  idle_lock.lock_for_fork();
}
void unlock_idle() {
  idle_lock.unlock_after_fork();
}
void reset_idle() {
  __atomic_store_n(&walk, Walk::none, __ATOMIC_RELAXED);  // the thread that walked is not in the child
  idle_lock.unlock_in_child();
}

}  // namespace hummock::heap
