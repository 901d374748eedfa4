// Joining a space that another process made.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "space/arena.h"
#include "space/space.h"

namespace hummock::space {
namespace {

bool is_space(const Control* control, size_t size) {
  return size >= sizeof(Control) && __atomic_load_n(&control->magic, __ATOMIC_ACQUIRE) == kMagic &&
         control->version == kVersion && control->control_size == sizeof(Control) && control->shared == 1 &&
         control->maximum <= size;
}

}  // namespace

Space* attach(int descriptor) {
  errno = EINVAL;  // unless the system refuses
  const size_t size = shared_size(descriptor);
  Control* control = size < sizeof(Control) ? nullptr : static_cast<Control*>(shared_map(descriptor, size));
  if (control == nullptr) return nullptr;
  if (!is_space(control, size)) {
    arena_calls.unmap(control, size);
    errno = EINVAL;
    return nullptr;
  }
  Space* space = new_handle();
  const int own_descriptor = space == nullptr ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own_descriptor < 0) {
    const int why = errno;
    if (space != nullptr) forget_handle(space);
    arena_calls.unmap(control, size);
    errno = why;
    return nullptr;
  }
  space->control = control;
  space->engine = reinterpret_cast<Engine*>(control + 1);
  space->threads = control->threads;
  space->zero = control->zero != 0;
  space->populate = control->populate;
  space->lock = control->lock;
  space->unit = os::page_size();
  space->descriptor = own_descriptor;
  space->mapped = size;
  set_calls(space);
  add_handle(space);
  return space;
}

Space* open(const char* name) {
  const int descriptor = shared_open(name);
  if (descriptor < 0) return nullptr;
  Space* space = attach(descriptor);
  const int why = errno;
  shared_close(descriptor);
  errno = why;
  return space;
}

}  // namespace hummock::space
