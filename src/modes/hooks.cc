#include "modes/hooks.h"

#include <errno.h>

#include "base/options.h"
#include "heap/attach.h"
#include "heap/refill.h"
#include "modes/recording.h"
#include "os/region_log.h"

namespace hummock::modes::hooks {

const hummock_hooks_t* installed;

namespace {

const hummock_hooks_t* current() {
  // acquire: pairs with the release of install, for what the program wrote there.
  return __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
}

bool wants_calls(const hummock_hooks_t* hooks) {
  return hooks != nullptr &&
         (hooks->allocated != nullptr || hooks->resized != nullptr || hooks->released != nullptr);
}

void tell_mapped(const char* what, const void* address, size_t bytes) {
  const hummock_hooks_t* to = current();
  if (to != nullptr && to->mapped != nullptr) to->mapped(to->context, what, address, bytes);
}

// When several threads install hooks at once, the ones installed last are in effect in the end.
void put_in_effect() {
  const hummock_hooks_t* now;
  do {
    now = current();
    os::set_event_hook(now != nullptr && now->mapped != nullptr ? tell_mapped : nullptr);
    heap::set_plain(!wants_calls(now) && !recording::is_on());
  } while (now != current());
}

// The thread's, with frees on the slow path. Null: it has none, or runs a hook just now.
Heap* begin_telling() {
  Heap* heap = heap::attach();
  if (heap == nullptr || heap->in_hook) return nullptr;
  if (heap->thread != 0) leave_fast_path(heap);
  heap->in_hook = true;
  return heap;
}

// The thread may have ended its heap and begun another one meanwhile.
void end_telling() {
  heap::thread_heap->in_hook = false;
}

}  // namespace

int install(const hummock_hooks_t* wanted) {
  if (wanted != nullptr && wanted->size < sizeof *wanted) return EINVAL;
  heap::initialise();
  if (options::values.checked || options::values.space_initial != 0) return EPERM;
  __atomic_store_n(&installed, wanted, __ATOMIC_RELEASE);
  put_in_effect();
  return 0;
}

void begin_in_child() {
  if (!options::values.checked && options::values.space_initial == 0) put_in_effect();
}

const hummock_hooks_t* wanted_calls() {
  const hummock_hooks_t* to = current();
  return wants_calls(to) ? to : nullptr;
}

void* tell_allocated(const hummock_hooks_t* to, void* block, size_t size) {
  if (block == nullptr || begin_telling() == nullptr) return block;
  if (to->allocated != nullptr) to->allocated(to->context, block, size);
  end_telling();
  return block;
}

void tell_resized(const hummock_hooks_t* to, void* block, size_t size) {
  if (begin_telling() == nullptr) return;
  if (to->resized != nullptr) to->resized(to->context, block, size, block);
  end_telling();
}

void tell_released(const hummock_hooks_t* to, void* block) {
  if (begin_telling() == nullptr) return;
  if (to->released != nullptr) to->released(to->context, block);
  end_telling();
}

}  // namespace hummock::modes::hooks
