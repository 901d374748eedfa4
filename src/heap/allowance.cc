#include "heap/allowance.h"

namespace hummock::heap {
namespace {

constexpr size_t kMostShares = 2;
constexpr uint32_t kUnit = 32 << 10;  // in which it is earned, and given back

// Both atomic, relaxed: bounds, by which nothing else is ordered.
base::OwnLine<size_t> earned;
base::OwnLine<size_t> threads;

size_t budget() {
  return pages::bound_by_use(size_t{8} << 20, 16);
}

size_t fair_share() {
  const size_t among = relaxed(threads.value);
  return budget() / (among == 0 ? 1 : among);
}

bool earn(Heap* heap, uint32_t bytes) {
  if (heap->earned + bytes > kMostShares * fair_share()) return false;
  if (relaxed(earned.value) + bytes > budget())
    return false;  // a plain look does not take the line from others
  if (__atomic_add_fetch(&earned.value, bytes, __ATOMIC_RELAXED) > budget()) {
    __atomic_fetch_sub(&earned.value, bytes, __ATOMIC_RELAXED);
    return false;
  }
  heap->earned += bytes;
  return true;
}

void give_back(Heap* heap, uint32_t bytes) {
  heap->earned -= bytes;
  __atomic_fetch_sub(&earned.value, bytes, __ATOMIC_RELAXED);
}

}  // namespace

bool hold(Heap* heap, size_t bytes) {
  const size_t wanted = heap->held + bytes;
  const size_t may = kAtRest + size_t{heap->earned};
  if (wanted > may && !earn(heap, static_cast<uint32_t>(base::align_up(wanted - may, kUnit)))) return false;
  heap->held = static_cast<uint32_t>(wanted);
  return true;
}

// One unit stays beyond what is held, so that a thread that frees and asks in turns need not earn it each
// time.
void settle(Heap* heap) {
  const size_t spare = kAtRest + size_t{heap->earned} - heap->held;
  if (heap->earned == 0 || spare < 2 * kUnit) return;
  const uint32_t bytes = static_cast<uint32_t>(base::align_down(spare - kUnit, kUnit));
  give_back(heap, bytes < heap->earned ? bytes : heap->earned);
}

bool has_too_much(const Heap* heap) {
  const bool more = heap->earned != 0 && heap->earned > fair_share();
  return more && relaxed(earned.value) > budget() / 8 * 7;
}

void enter_thread() {
  __atomic_fetch_add(&threads.value, 1, __ATOMIC_RELAXED);
}

void leave_thread() {
  __atomic_fetch_sub(&threads.value, 1, __ATOMIC_RELAXED);
}

void give_up_earned(Heap* heap) {
  give_back(heap, heap->earned);
}

size_t count_threads() {
  return relaxed(threads.value);
}

void forget_others(const Heap* heap, size_t earned_by_parked) {
  set_relaxed(threads.value, size_t{heap != nullptr});
  set_relaxed(earned.value, earned_by_parked + (heap != nullptr ? heap->earned : 0));
}

}  // namespace hummock::heap
