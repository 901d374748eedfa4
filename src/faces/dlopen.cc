// dlopen without RTLD_DEEPBIND, in the shared library alone. With it a library finds libc's malloc before the
// one that was preloaded, and a block that goes from it to the program, or back, is freed by the wrong one:
// PHP, which loads all its extensions so, crashes at start under any preloaded malloc.
#include <dlfcn.h>

#ifdef RTLD_DEEPBIND  // musl has no such flag

#include "base/message.h"
#include "base/options.h"
#include "hummock/hummock.h"

using namespace hummock;

namespace {

using Dlopen = void* (*)(const char* name, int flags);

// Atomic, relaxed: whoever finds it null looks it up, to the same end.
Dlopen next;

Dlopen find_next() {
  Dlopen found = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (found != nullptr) return found;
  found = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  __atomic_store_n(&next, found, __ATOMIC_RELAXED);
  return found;
}

__attribute__((noinline)) int without_deepbind(const char* name, int flags) {
  if (hummock_is_active() == 0) return flags;
  if (options::values.verbose) {
    base::say(base::Line() << "dlopen(\"" << (name != nullptr ? name : "")
                           << "\"): without RTLD_DEEPBIND, so that it calls this malloc, too");
  }
  return flags & ~RTLD_DEEPBIND;
}

}  // namespace

// It must end in a jump: libc's dlopen looks at its return address for the caller, whose RUNPATH and
// namespace count. The build sees to that (-foptimize-sibling-calls), a test that it is so.
extern "C" HUMMOCK_EXPORT void* dlopen(const char* name, int flags) noexcept {
  const Dlopen real = find_next();
  if ((flags & RTLD_DEEPBIND) != 0) flags = without_deepbind(name, flags);
  return real(name, flags);
}

#endif
