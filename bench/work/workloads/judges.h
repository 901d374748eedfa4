// What C++ programs call to allocate and free: the operators of the preloaded allocator, or libstdc++'s.
#pragma once
#include <dlfcn.h>
#include <stddef.h>

#include "arena.h"

class Operators {
 public:
  // Found at run time: this program is linked without libstdc++, so nothing allocates before main.
  Operators() {
    void* place = RTLD_DEFAULT;
    if (dlsym(place, "_Znwm") == nullptr) place = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
    if (place == nullptr && dlsym(RTLD_DEFAULT, "_Znwm") == nullptr) fail(3, "libstdc++.so.6 is not there");
    find(place, "_Znwm", allocate);
    find(place, "_ZdlPv", release);
    find(place, "_ZdlPvm", release_sized);
  }

  void* (*allocate)(size_t);
  void (*release)(void*);
  void (*release_sized)(void*, size_t);

 private:
  template <class Function>
  static void find(void* place, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(place, name));
    if (function == nullptr) fail(3, "no operator %s", name);
  }
};
