// Records of first-class heaps.
#include "heap/user.h"
#include "pages/metadata.h"

namespace hummock::heap {
namespace {

os::Lock<os::Rank::user_pool> pool_lock;
UserHeap* records;  // all there ever were. Atomic: pushed with release
UserHeap* pool;     // those not in use. Guarded by pool_lock.
size_t number;      // of the program's. Atomic, relaxed
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
  heap->self = heap;
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
  set_relaxed(heap->life, Life::used);
  if (!internal) __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED);
  os::LockGuard guard(pool_lock);
  in_use.push_front(heap);
  return heap;
}

UserHeap* internal_heap(UserHeap** place, bool samples) {
  // acquire: pairs with the exchange, so that the heap is seen as it was made.
  UserHeap* heap = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (heap != nullptr) return heap;
  UserHeap* fresh = new_user_heap(true);
  if (fresh == nullptr) return nullptr;
  fresh->samples = samples;
  if (__atomic_compare_exchange_n(place, &heap, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return fresh;
  delete_user_heap(fresh);  // another thread was quicker
  return heap;
}

bool end_use(UserHeap* heap) {
  Life life = Life::used;
  Life ending = Life::ending;
  if (!__atomic_compare_exchange(&heap->life, &life, &ending, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    return false;
  }
  heap->name[0] = '\0';
  if (!relaxed(heap->internal)) __atomic_fetch_sub(&number, 1, __ATOMIC_RELAXED);
  return true;
}

void delete_user_heap(UserHeap* heap) {
  end_use(heap);
  set_relaxed(heap->internal, false);
  heap->closed = heap->samples = false;
  set_relaxed(heap->life, Life::pooled);
  os::LockGuard guard(pool_lock);
  in_use.remove(heap);
  heap->next = pool;
  pool = heap;
}

const UserHeap* all_user_heaps() {
  return __atomic_load_n(&records, __ATOMIC_ACQUIRE);
}

size_t count_user_heaps() {
  return relaxed(number);
}

void user_heaps_at_fork(os::ForkStep step) {
  if (step == os::ForkStep::before) pool_lock.at_fork(step);
  for (UserHeap* heap = in_use.front(); heap != nullptr; heap = heap->next) heap->lock.at_fork(step);
  if (step != os::ForkStep::before) pool_lock.at_fork(step);
}

bool user_heaps_are_locked() {
  if (pool_lock.is_held()) return true;
  for (const UserHeap* heap = in_use.front(); heap != nullptr; heap = heap->next) {
    if (heap->lock.is_held()) return true;
  }
  return false;
}

}  // namespace hummock::heap
