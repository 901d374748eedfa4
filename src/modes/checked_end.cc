// Checked mode at the end of a heap, and of the program: all blocks that are not free, in quarantine or not.
#include "base/system.h"
#include "heap/attach.h"
#include "heap/walk.h"
#include "modes/checked.h"
#include "modes/checked_record.h"
#include "modes/quarantine.h"

namespace hummock::modes::checked {
namespace {

// Of a block that its heap has handed out. Another thread may be about to write its record, or to give it
// back: then the state is `none`.
bool is_sound(Record* record) {
  const State state = state_of(record);
  if (state == State::none) return true;
  if (!is_whole(record)) return state_of(record) == State::none;
  return guards_hold(record) && (state != State::freed || poison_holds(record));
}

[[noreturn]] void say_unsound(Record* record) {
  if (!is_whole(record)) say_overwritten("at the end: the record of a block", record);
  check_guards("at the end", record);
  check_poison("at the end", record);
  base::stop();
}

int look(void* context, void* block, size_t) {
  auto* record = static_cast<Record*>(block);
  if (is_sound(record)) return 1;
  *static_cast<Record**>(context) = record;
  return 0;
}

// The first one of the heap; or null. It is reported without the heap's lock: a handler of the abort may
// call us.
Record* find_unsound(UserHeap* heap) {
  Record* found = nullptr;
  walk_locked(heap, {look, &found});
  return found;
}

int forget_block(void*, void* block, size_t) {
  auto* record = static_cast<Record*>(block);
  const State state = state_of(record);
  if (!is_state(state)) return 1;
  if (state == State::live) announce_end(record);
  if (record->hollow) allow_inside(record);
  set_state(record, State::none);
  announce_room(record);
  return 1;
}

}  // namespace

bool forget(UserHeap* heap) {
  if (!drop_from_quarantine(heap)) return false;
  walk_locked(heap, {forget_block, nullptr});
  return true;
}

void check_all() {
  if (!heap::is_checked()) return;
  for (const UserHeap* each = heap::all_user_heaps(); each != nullptr; each = each->next_record) {
    auto* heap = const_cast<UserHeap*>(each);
    if (!relaxed(heap->used) || (relaxed(heap->internal) && !is_process_heap(heap))) continue;
    if (Record* record = find_unsound(heap)) say_unsound(record);
  }
}

}  // namespace hummock::modes::checked
