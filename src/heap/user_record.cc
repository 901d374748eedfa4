// Records of first-class heaps.
#include "heap/user.h"
#include "pages/metadata.h"

namespace hummock::heap {
namespace {

os::Lock<os::Rank::user_pool> pool_lock;
UserHeap* records;  // all there ever were. Atomic: pushed with release
UserHeap* pool;     // those not in use. Guarded by pool_lock.
size_t number;      // of the program's. Guarded by pool_lock.
base::List<UserHeap, &UserHeap::next, &UserHeap::prev> in_use;  // guarded by pool_lock: for fork

UserHeap* from_pool() {
  os::LockGuard guard(pool_lock);
  UserHeap* heap = pool;
  if (heap != nullptr) pool = heap->next;
  return heap;
}

UserHeap* new_record() {
  if (UserHeap* heap = from_pool()) return heap;
  auto* heap = static_cast<UserHeap*>(pages::new_heap_record(sizeof(UserHeap)));
  if (heap == nullptr) return nullptr;
  heap->next_record = __atomic_load_n(&records, __ATOMIC_RELAXED);
  // release: pairs with the acquire of all_user_heaps.
  while (!__atomic_compare_exchange_n(&records, &heap->next_record, heap, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return heap;
}

}  // namespace

UserHeap* new_user_heap(bool internal) {
  UserHeap* heap = new_record();
  if (heap == nullptr) return nullptr;
  set_relaxed(heap->internal, internal);
  set_relaxed(heap->used, true);
  os::LockGuard guard(pool_lock);
  in_use.push_front(heap);
  number += !internal;
  return heap;
}

void delete_user_heap(UserHeap* heap) {
  const bool internal = heap->internal;
  heap->name[0] = '\0';
  set_relaxed(heap->used, false);
  set_relaxed(heap->internal, false);
  os::LockGuard guard(pool_lock);
  in_use.remove(heap);
  number -= !internal;
  heap->next = pool;
  pool = heap;
}

const UserHeap* all_user_heaps() {
  return __atomic_load_n(&records, __ATOMIC_ACQUIRE);
}

size_t count_user_heaps() {
  os::LockGuard guard(pool_lock);
  return number;
}

void lock_user_heaps() {
  pool_lock.lock_for_fork();
  for (UserHeap* heap = in_use.front(); heap != nullptr; heap = heap->next) heap->lock.lock_for_fork();
}

void unlock_user_heaps() {
  for (UserHeap* heap = in_use.front(); heap != nullptr; heap = heap->next) heap->lock.unlock_after_fork();
  pool_lock.unlock_after_fork();
}

void reset_user_heaps() {
  for (UserHeap* heap = in_use.front(); heap != nullptr; heap = heap->next) {
    heap->lock.unlock_in_child();
    heap->leaving = 0;  // who took them out is not here
  }
  pool_lock.unlock_in_child();
}

bool user_heaps_are_locked() {
  return pool_lock.is_held();
}

}  // namespace hummock::heap
