// All spaces of the process: for the monitor and for fork. The handles stand in the internal space.
#include <string.h>

#include "base/text.h"
#include "os/lock.h"
#include "space/space.h"

namespace hummock::space {
namespace {

constexpr size_t kInternalStep = 64 << 10;
constexpr size_t kInternalMost = 64 << 20;

os::Lock<os::Rank::spaces> registry_lock;
Space internal_handle;  // guarded by registry_lock until made
bool internal_made;     // guarded by registry_lock
Space external_handle;
bool external_made;  // atomic: release after the handle is made
Space* first;        // guarded by registry_lock

void set_first(Space* space) {
  first = space;
  // The monitor reads it from outside.
  __atomic_store_n(&internal_handle.control->root, reinterpret_cast<uintptr_t>(space), __ATOMIC_RELAXED);
}

void drop_entry(Space* space) {
  Space* next = space->next;
  if (next != nullptr) next->prev = space->prev;
  if (space->prev != nullptr) {
    space->prev->next = next;
  } else {
    set_first(next);
  }
}

void hold(Space* space) {
  if (space->lends) {
    space->control->lending.lock_for_fork();
  } else {
    enter(space);
  }
  space->held_for_fork = true;
}

void let_go(Space* space) {
  space->held_for_fork = false;
  if (space->lends) return space->control->lending.unlock_after_fork();
  leave(space);
}

void before_fork() {
  os::take_streams();
  registry_lock.at_fork(os::ForkStep::before);
  for (Space* space = first; space != nullptr; space = space->next) {
    // Another process's hold on a shared space is none of ours, and an owner's is no lock.
    if (space->threads == Threads::owner || space->descriptor >= 0) continue;
    hold(space);
    stop_caches(space);
  }
  if (internal_made) hold(&internal_handle);
}

// Those that before_fork() held. A handler of the program's that runs inside ours may have made others.
template <class Visit>
void for_each_held(Visit visit) {
  if (internal_handle.held_for_fork) visit(&internal_handle);
  for (Space* space = first; space != nullptr; space = space->next) {
    if (space->held_for_fork) visit(space);
  }
}

void after_fork_in_parent() {
  for_each_held([](Space* space) {
    restart_caches(space);
    let_go(space);
  });
  registry_lock.at_fork(os::ForkStep::in_parent);
  os::release_streams();
}

void begin_anew(Space* space) {
  space->held_for_fork = false;
  drop_caches_of_others(space);
  if (space->lends) {
    space->control->lending.unlock_in_child();
  } else if (space->threads == Threads::inherit) {
    make_mutex(space->control);  // the child's thread has another number, which the mutex does not know
  } else {
    Control* control = space->control;  // who waited is not in the child
    control->turn = uint64_t{control->next_ticket} << 32;
  }
}

void after_fork_in_child() {
  os::forget_futex_number();
  for (Space* space = first; space != nullptr;) {
    Space* next = space->next;
    space->creator = false;  // its parent removes the name
    if (space->out_of_forks) drop_entry(space);
    space = next;
  }
  for_each_held(begin_anew);
  registry_lock.at_fork(os::ForkStep::in_child);
  os::reset_streams();
}

// Before there are threads: one may fork while another makes the first space. And before the heap's: so a
// fork takes their locks first, as the first call does, which may make a space.
__attribute__((constructor(101))) void handle_forks() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// The internal space needs a handle itself, so it is made apart.
bool make_internal() {
  hummock_space_options_t options = {};
  options.size = sizeof(options);
  options.name = "internal";
  options.initial = kInternalStep;
  options.expand = kInternalStep;
  options.maximum = kInternalMost;
  options.threads = HUMMOCK_SPACE_SPIN;
  if (!make(&internal_handle, options)) return false;
  internal_handle.control->internal = 1;
  internal_made = true;
  return true;
}

}  // namespace

Space* external() {
  return __atomic_load_n(&external_made, __ATOMIC_ACQUIRE) ? &external_handle : nullptr;
}

bool make_external(const hummock_space_options_t& options) {
  {
    os::LockGuard guard(registry_lock);
    if (!internal_made && !make_internal()) return false;
  }
  external_handle.lends = external_handle.promised = true;
  if (!make(&external_handle, options)) return false;
  add_handle(&external_handle);
  __atomic_store_n(&external_made, true, __ATOMIC_RELEASE);
  return true;
}

Space* internal() {
  os::LockGuard guard(registry_lock);
  return internal_made ? &internal_handle : nullptr;
}

Space* new_handle() {
  void* place = nullptr;
  {
    os::LockGuard guard(registry_lock);
    if (!internal_made && !make_internal()) return nullptr;
    place = allocate(&internal_handle, sizeof(Space), alignof(Space), false);
  }
  return place == nullptr ? nullptr : static_cast<Space*>(memset(place, 0, sizeof(Space)));
}

void add_handle(Space* space) {
  os::LockGuard guard(registry_lock);
  space->next = first;
  if (first != nullptr) first->prev = space;
  set_first(space);
}

// The process that is asked may be in the middle of a malloc: this waits for nobody and takes none of the
// spaces' own locks.
uint32_t list(hummock_page_space_t* rows, uint32_t room, uint64_t* all) {
  if (!registry_lock.try_lock()) return 0;
  uint32_t count = 0;
  for (const Space* space = first; space != nullptr; space = space->next) {
    ++*all;
    if (count == room) continue;
    const Engine* engine = space->engine;
    hummock_page_space_t* row = &rows[count++];
    row->bytes = figure(space->control->bytes);
    row->maximum = space->control->maximum;
    row->used = figure(engine->used);
    row->peak = figure(engine->peak);
    row->live_blocks = figure(engine->live);
    row->failures = figure(engine->failures);
    base::copy_printable(space->control->name, row->name, sizeof row->name);
  }
  registry_lock.unlock();
  return count;
}

void drop_handle(Space* space) {
  os::LockGuard guard(registry_lock);
  drop_entry(space);
}

void forget_handle(Space* space) {
  os::LockGuard guard(registry_lock);
  release(&internal_handle, space);
}

}  // namespace hummock::space
