// The ways into a space that do not stand in space.h.
#include "space/space.h"

namespace hummock::space {

void wait_turn(Control* control, uint32_t ticket) {
  // acquire: pairs with the release in leave(), so that we see what the last holder wrote.
  while (__atomic_load_n(&control->serving, __ATOMIC_ACQUIRE) != ticket) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
  }
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

// Who had the lock died in it. The headers say what is live; all else is made from them.
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
  const int error = pthread_mutex_lock(&space->control->mutex);
  if (__builtin_expect(error == 0, true)) return true;
  if (error == EOWNERDEAD) return recover(space);
  errno = error;
  return false;
}

}  // namespace hummock::space
