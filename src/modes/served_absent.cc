// Where no space can serve malloc: on Windows. What modes/served.h says, for a mode that is never on.
#include <errno.h>

#include "base/message.h"
#include "modes/served.h"

namespace hummock::modes::served {

void start() {
  base::die(base::Line() << "space_initial: malloc cannot be served from a space on this system");
}

void* serving = nullptr;

void* allocate_plain(size_t) {
  return nullptr;
}

bool release(void*) {
  return false;
}

bool owns(const void*) {
  return false;
}

// Nobody comes here: start() does not return, owns() and is_on() are false.
void* allocate(size_t, size_t, bool) {
  errno = ENOMEM;
  return nullptr;
}

void* reallocate(void*, size_t, bool) {
  errno = ENOMEM;
  return nullptr;
}

size_t usable_size(const void*) {
  return 0;
}

void release_sized(const char*, void*, size_t, size_t) {}
void add_figures(hummock_stats_t*) {}
uint32_t list_spaces(hummock_page_space_t*, uint32_t, uint64_t*) {
  return 0;
}

}  // namespace hummock::modes::served
