#include "faces/cxx_runtime.h"

#include <dlfcn.h>

#include <initializer_list>

// Weak, so that a C program needs no C++ library. The names are those of the Itanium C++ ABI.
#define HUMMOCK_CXX_SYMBOLS(X) \
  X(_ZSt15get_new_handlerv)    \
  X(__cxa_allocate_exception)  \
  X(__cxa_throw)               \
  X(_ZTISt9bad_alloc)          \
  X(_ZTVSt9bad_alloc)          \
  X(_ZNSt9bad_allocD1Ev)

// Declared as bytes under names of our own: only addresses are wanted.
#define HUMMOCK_DECLARE(name) extern "C" __attribute__((weak)) char weak_##name[] __asm__(#name);
HUMMOCK_CXX_SYMBOLS(HUMMOCK_DECLARE)
#undef HUMMOCK_DECLARE

// Weak too: a program that is linked statically has no dynamic linker to ask.
extern "C" __attribute__((weak)) decltype(dlsym) weak_dlsym __asm__("dlsym");

namespace hummock::faces {
namespace {

struct Entry {
  const char* name;
  char* linked;
};

// A program without C++ may have loaded it with a plug-in, perhaps out of the global scope. dlopen is not
// referred to by name: static linking would warn of it.
void* find_loaded(const char* name) {
  if (&weak_dlsym == nullptr) return nullptr;
  if (void* found = weak_dlsym(RTLD_DEFAULT, name)) return found;
  auto* open = reinterpret_cast<decltype(&dlopen)>(weak_dlsym(RTLD_DEFAULT, "dlopen"));
  if (open == nullptr) return nullptr;
  for (const char* library : {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"}) {
    void* handle = open(library, RTLD_LAZY | RTLD_NOLOAD);
    void* found = handle == nullptr ? nullptr : weak_dlsym(handle, name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

void* find_cxx(CxxSymbol symbol) {
#define HUMMOCK_ENTRY(name) {#name, weak_##name},
  static const Entry entries[] = {HUMMOCK_CXX_SYMBOLS(HUMMOCK_ENTRY)};
#undef HUMMOCK_ENTRY
  const Entry& entry = entries[static_cast<size_t>(symbol)];
  return entry.linked != nullptr ? entry.linked : find_loaded(entry.name);
}

}  // namespace hummock::faces
