// What heap/modes.h promises: which of the modes a call goes to.
#include "heap/modes.h"

#include "base/message.h"
#include "base/options.h"
#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/limit_notice.h"
#include "heap/release.h"
#include "heap/user.h"
#include "modes/checked.h"
#include "modes/guards.h"
#include "modes/hooks.h"
#include "modes/recording.h"
#include "modes/sampling.h"
#include "modes/served.h"

namespace hummock::modes {

bool start() {
  const bool sampled = options::values.profile != 0 || options::values.guards != 0;
  if (options::values.space_initial != 0) {
    if (sampled) base::say(base::Line() << "profile and guards have no effect where a space serves malloc");
    return served::start(), false;
  }
  if (options::values.checked) {
    if (sampled) base::say(base::Line() << "profile and guards have no effect in checked mode");
    return false;
  }
  recording::start();
  return !recording::is_on();
}

void at_fork(os::ForkStep step) {
  if (step == os::ForkStep::before) checked::at_fork(step);
  guards::at_fork(step);
  if (step != os::ForkStep::before) checked::at_fork(step);
}

bool is_locked() {
  return guards::is_locked() || checked::is_locked();
}

void begin_in_child() {
  sampling::in_child();
  recording::in_child();
  hooks::begin_in_child();
}

void* allocate(size_t align, size_t size, bool zero) {
  if (served::is_on()) return served::allocate(align, size, zero);
  if (heap::is_checked()) return checked::allocate(nullptr, align, size, zero);
  if (heap::is_served()) return served::allocate(align, size, zero);
  // Where no hook wants the call the options have just been read, or hooks are about to come or go.
  void* block = heap::allocate_unseen(align, size, zero);
  if (recording::is_on()) recording::allocated(block, align, size, zero);
  const hummock_hooks_t* to = hooks::wanted_calls();
  return to != nullptr ? hooks::tell_allocated(to, block, size) : block;
}

void* allocate_plain(size_t size) {
  if (served::is_on()) return served::allocate_plain(size);
  return allocate(0, size, false);
}

void* reallocate(void* p, size_t size, bool zero) {
  if (heap::is_checked()) return checked::reallocate(nullptr, p, size, zero);
  if (served::owns(p)) return served::reallocate(p, size, zero);
  if (recording::is_on()) heap::find_block("realloc", p);  // a handler of bad pointers may not return here
  recording::Resize recorded(p);
  // Hooks must hear of a new address before anybody else can have the old one.
  const hummock_hooks_t* to = hooks::wanted_calls();
  bool copied = false;
  void* resized = heap::resize_unseen(p, size, zero, to == nullptr, &copied);
  recorded.ends(resized, size);
  if (to != nullptr && !copied) hooks::tell_resized(to, resized, size);
  heap::tell_if_limited();
  return resized;
}

size_t usable_size(const void* p) {
  if (heap::is_checked()) return checked::usable_size(p);
  if (served::owns(p)) return served::usable_size(p);
  return heap::find_block("malloc_usable_size", p).room;
}

void release(void* p, SlabHeader* slot) {
  if (p == nullptr) return;
  if (served::is_on() && served::release(p)) return;
  if (heap::is_checked()) return checked::release("free", p);
  if (const hummock_hooks_t* to = hooks::wanted_calls()) hooks::tell_released(to, p);
  if (recording::is_on()) recording::released(p);
  heap::release_unseen(p, slot);
}

void release_sized(const char* call, void* p, size_t align, size_t size) {
  if (heap::is_checked()) return checked::release_sized(call, p, align, size);
  if (served::owns(p)) return served::release_sized(call, p, align, size);
  heap::check_sized(call, p, align, size);
  if (recording::is_on()) recording::note(HUMMOCK_RECORD_SIZED, size, align);
  heap::release(p);
}

void* allocate_new(size_t size) {
  if (recording::is_on()) recording::note(HUMMOCK_RECORD_NEW);
  void* block = heap::allocate_medium(size);
  if (heap::is_checked() && block != nullptr) checked::note_one(block);
  return block;
}

void note_delete(void* p) {
  if (recording::is_on()) recording::note(HUMMOCK_RECORD_DELETE);
  if (heap::is_checked()) checked::expect_one(p);
}

void* allocate_in(UserHeap* heap, size_t align, size_t size, bool zero) {
  if (heap::is_checked()) return checked::allocate(heap, align, size, zero);
  void* block = heap::user_take(heap, align, size, zero);
  const hummock_hooks_t* to = hooks::wanted_calls();
  return to != nullptr ? hooks::tell_allocated(to, block, size) : block;
}

void release_in(UserHeap* heap, void* p) {
  if (heap::is_checked()) return checked::release("hummock_heap_free", p, heap);
  if (const hummock_hooks_t* to = hooks::wanted_calls()) hooks::tell_released(to, p);
  heap::user_give(heap, p, "hummock_heap_free");
}

}  // namespace hummock::modes
