// The ways into a space that do not stand in space.h.
#include <limits.h>

#include "os/lock.h"
#include "space/space.h"

namespace hummock::space {

namespace {

constexpr int kTries = 40;   // of the mutex: as long as a few calls inside take
constexpr int kSpins = 200;  // longer than a dozen calls inside take: then who has the turn does not run

// The futex is the half of the word that tells whose turn it is.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
const uint32_t* turn_word(const Control* control) {
  return reinterpret_cast<const uint32_t*>(&control->turn) + 1;
}
// Those whose tickets differ by a multiple of 32 are woken together.
uint32_t bit_of(uint32_t ticket) {
  return uint32_t{1} << ticket % 32;
}

}  // namespace

// Each acquire pairs with the release in leave_as(), so that we see what the last holder wrote. Who sleeps
// has counted itself in the word that whoever leaves changes, and read there that the turn is another's: so
// the change to its turn finds it counted, and wakes it, or comes before it sleeps, which the kernel sees.
void wait_turn(Control* control, uint32_t ticket) {
  for (int i = 0; i < kSpins; ++i) {
    if (served_in(__atomic_load_n(&control->turn, __ATOMIC_ACQUIRE)) == ticket) return;
    os::pause_cpu();
  }
  uint64_t turn = __atomic_add_fetch(&control->turn, 1, __ATOMIC_ACQUIRE);
  while (served_in(turn) != ticket) {
    os::sleep_while(turn_word(control), served_in(turn), bit_of(ticket));
    turn = __atomic_load_n(&control->turn, __ATOMIC_ACQUIRE);
  }
  __atomic_fetch_sub(&control->turn, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void wake_turn(Control* control, uint32_t ticket) {
  os::wake_sleepers(turn_word(control), INT_MAX, bit_of(ticket));
}

bool refuse_other_thread() {
  errno = EPERM;
  return false;
}

int make_mutex(Control* control) {
  pthread_mutexattr_t how;
  int error = pthread_mutexattr_init(&how);
  if (error == 0) error = pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
  if (error == 0 && control->shared != 0) {
    error = pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    if (error == 0) error = pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  }
  if (error == 0) error = pthread_mutex_init(&control->mutex, &how);
  pthread_mutexattr_destroy(&how);
  return error;
}

namespace {

// The holder of the lock died in it. The headers say what is live; everything else is rebuilt from them.
bool recover(Space* space) {
  Control* control = space->control;
  if (!rebuild(space->engine)) {
    control->broken = 1;
    pthread_mutex_unlock(&control->mutex);  // without consistent(): everybody is refused from now on
    errno = ENOTRECOVERABLE;
    return false;
  }
  control->bytes = space->engine->end + sizeof(Control);
  ++control->recoveries;
  pthread_mutex_consistent(&control->mutex);
  return true;
}

}  // namespace

bool enter_mutex(Space* space) {
  if (space->lends) {
    space->control->lending.lock();
    return true;
  }
  pthread_mutex_t* mutex = &space->control->mutex;
  // Passing the lock to a sleeper takes long; if the holder runs, it will be free in a moment.
  for (int i = 0; space->descriptor < 0 && i < kTries; ++i) {
    if (pthread_mutex_trylock(mutex) == 0) return true;
    os::pause_cpu();
  }
  const int error = pthread_mutex_lock(mutex);
  if (__builtin_expect(error == 0, true)) return true;
  if (error == EOWNERDEAD) return recover(space);
  errno = error;
  return false;
}

void leave_mutex(Space* space) {
  if (space->lends) return space->control->lending.unlock();
  pthread_mutex_unlock(&space->control->mutex);
}

}  // namespace hummock::space
