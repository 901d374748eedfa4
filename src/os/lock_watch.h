// Watchers of the locks: the check of their order in debug and test builds (HUMMOCK_CHECK_LOCKS), and
// ThreadSanitizer. In other builds all of this is empty.
#ifndef HUMMOCK_OS_LOCK_WATCH_H
#define HUMMOCK_OS_LOCK_WATCH_H

#include <stdint.h>

#include "os/lock_rank.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HUMMOCK_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define HUMMOCK_THREAD_SANITIZER 1
#endif

#if defined(HUMMOCK_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace hummock::os {

#if defined(HUMMOCK_CHECK_LOCKS) || defined(HUMMOCK_THREAD_SANITIZER)
inline constexpr bool kWatched = true;
#else
inline constexpr bool kWatched = false;
#endif

namespace watch {

#if defined(HUMMOCK_CHECK_LOCKS)
// Ends the process when this thread holds a lock of this rank or below, unless...
void check_order(Rank rank);
// ... for a fork: a lock that was taken for it and stands below. It takes many of one rank, and what the
// thread held before, when a signal handler forks, is not asked for.
void check_fork_order(Rank rank);
void note(Rank rank, bool for_fork);
void forget(Rank rank, bool for_fork);
#else
inline void check_order(Rank) {}
inline void check_fork_order(Rank) {}
inline void note(Rank, bool) {}
inline void forget(Rank, bool) {}
#endif

#if defined(HUMMOCK_THREAD_SANITIZER)
inline void tell_before(void* lock, bool tries) {
  __tsan_mutex_pre_lock(lock, __tsan_mutex_linker_init | (tries ? __tsan_mutex_try_lock : 0));
}
inline void tell_after(void* lock, bool tries, bool got) {
  __tsan_mutex_post_lock(lock,
                         __tsan_mutex_linker_init | (tries ? __tsan_mutex_try_lock : 0) |
                             (got ? 0 : __tsan_mutex_try_lock_failed),
                         0);
}
inline void tell_before_release(void* lock) {
  __tsan_mutex_pre_unlock(lock, __tsan_mutex_linker_init);
}
inline void tell_released(void* lock) {
  __tsan_mutex_post_unlock(lock, __tsan_mutex_linker_init);
}
#else
inline void tell_before(void*, bool) {}
inline void tell_after(void*, bool, bool) {}
inline void tell_before_release(void*) {}
inline void tell_released(void*) {}
#endif

inline void before(void* lock, Rank rank) {
  check_order(rank);
  tell_before(lock, false);
}
inline void taken(void* lock, Rank rank) {
  tell_after(lock, false, true);
  note(rank, false);
}

// A thread that only tries a lock waits for nobody, so any order will do.
inline void before_try(void* lock) {
  tell_before(lock, true);
}
inline void tried(void* lock, Rank rank, bool got) {
  tell_after(lock, true, got);
  if (got) note(rank, false);
}

inline void before_release(void* lock, Rank rank) {
  forget(rank, false);
  tell_before_release(lock);
}
inline void released(void* lock) {
  tell_released(lock);
}

// ThreadSanitizer looks after fork itself, and knows no thread that has thousands of locks.
inline void before_fork(void*, Rank rank) {
  check_fork_order(rank);
}
inline void taken_for_fork(void*, Rank rank, bool taken) {
  if (taken) note(rank, true);
}
inline void released_after_fork(void*, Rank rank, bool released) {
  if (released) forget(rank, true);
}

}  // namespace watch
}  // namespace hummock::os

#endif  // HUMMOCK_OS_LOCK_WATCH_H
