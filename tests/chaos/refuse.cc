#include "refuse.h"

#ifdef CHAOS_PREFIXED
#include <errno.h>
#include <sys/mman.h>

#include "os/os.h"
#include "support/support.h"

namespace refuse {
namespace {

const hummock::os::Calls real = hummock::os::calls;
thread_local unsigned rate = 0;
thread_local support::Random draws(0);

bool refused() {
  if (rate == 0 || !draws.one_in(rate)) return false;
  errno = ENOMEM;
  return true;
}
void* map(void* hint, size_t size, int protection, int flags) {
  return refused() ? MAP_FAILED : real.map(hint, size, protection, flags);
}
int unmap(void* address, size_t size) {
  return refused() ? -1 : real.unmap(address, size);
}
int advise(void* address, size_t size, int advice) {
  return refused() ? -1 : real.advise(address, size, advice);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return refused() ? MAP_FAILED : real.remap(address, old_size, new_size, flags, target);
}

}  // namespace

void one_in(unsigned n, uint64_t seed) {
  rate = n;
  draws = support::Random(seed);
}
void install() {
  hummock::os::calls = {map, unmap, advise, remap};
}

}  // namespace refuse
#else
namespace refuse {
void one_in(unsigned, uint64_t) {}
void install() {}
}  // namespace refuse
#endif
