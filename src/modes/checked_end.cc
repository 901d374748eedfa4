// Checked mode at the end of a heap, and of the program: all blocks that are not free, in quarantine or not.
#include "base/system.h"
#include "heap/attach.h"
#include "heap/walk.h"
#include "modes/checked.h"
#include "modes/checked_record.h"
#include "modes/quarantine.h"
#include "os/os.h"

namespace hummock::modes::checked {
namespace {

// Of a block that its heap has handed out; the caller has the heap's lock. Another thread may be about to
// write the block's record, or to give the block back: then the state is `none`.
bool is_sound(Record* record) {
  const State state = state_of(record);
  if (state == State::none) return true;
  if (!is_whole(record)) return state_of(record) == State::none;
  return guards_hold(record) && (state != State::freed || poison_holds(record));
}

// Without the heap's lock: a handler of the abort may call us.
[[noreturn]] void say_unsound(const char* call, Record* record) {
  if (is_whole(record)) check_guards(call, record);
  if (is_whole(record) && state_of(record) == State::freed) check_poison(call, record);
  say_overwritten(call, record);
}

struct Found {
  Record* unsound;  // the first one; null: none
  Record* live;     // all that were live, and are claimed now
};

int look(void* context, void* block, size_t) {
  auto* record = static_cast<Record*>(block);
  if (is_sound(record)) return 1;
  static_cast<Found*>(context)->unsound = record;
  return 0;
}

int look_and_claim(void* context, void* block, size_t size) {
  if (look(context, block, size) == 0) return 0;
  auto* found = static_cast<Found*>(context);
  auto* record = static_cast<Record*>(block);
  if (!try_claim(record)) return 1;
  record->next = found->live;
  found->live = record;
  return 1;
}

// Whoever has a heap's lock may have stopped for good: above all this very thread, if a handler of a signal
// ends the program, or another that waits for a lock of this one. So all locks together are waited for this
// often, for 1 ms; each for a quarter of what is left.
constexpr unsigned kPatience = 200;

// A thread that takes the lock again and again lets go of it between.
bool lock_between(UserHeap* heap) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (heap->lock.try_lock()) return true;
    os::pause_cpu();
  }
  return false;
}

bool lock_in_time(UserHeap* heap, unsigned* patience) {
  const unsigned least = *patience - *patience / 4;
  while (!lock_between(heap)) {
    if (*patience == least) return false;
    --*patience;
    os::sleep_ms(1);
  }
  return true;
}

}  // namespace

void destroy(UserHeap* heap) {
  const char* call = "hummock_heap_destroy";
  if (!end_use(heap)) say_no_heap(call, heap);
  Found found = {};
  {
    os::LockGuard guard(heap->lock);
    walk_held(heap, {look_and_claim, &found});
  }
  if (found.unsound != nullptr) say_unsound(call, found.unsound);
  while (Record* record = found.live) {
    found.live = record->next;
    retire(record);
  }
  charge_quarantine(user_end(heap));
}

void check_all() {
  if (!heap::is_checked()) return;
  unsigned patience = kPatience;
  for (const UserHeap* each = heap::all_user_heaps(); each != nullptr; each = each->next_record) {
    auto* heap = const_cast<UserHeap*>(each);
    if (relaxed(heap->life) == heap::Life::pooled || !lock_in_time(heap, &patience)) continue;
    Found found = {};
    // Other heaps of Hummock's own have no records.
    if (!relaxed(heap->internal) || is_process_heap(heap)) walk_held(heap, {look, &found});
    heap->lock.unlock();
    if (found.unsound != nullptr) say_unsound("at the end", found.unsound);
  }
}

}  // namespace hummock::modes::checked
