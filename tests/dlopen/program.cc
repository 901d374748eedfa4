// A library that dlopen loads with RTLD_DEEPBIND has the program's malloc all the same; and dlopen still
// knows who calls it. Argument: the plugin.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

namespace {

void require(bool good, const char* what) {
  if (good) return;
  const char* error = dlerror();
  fprintf(stderr, "%s: %s\n", what, error != nullptr ? error : "wrong");
  exit(1);
}

template <class F>
F* function(void* library, const char* name) {
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  require(found != nullptr, name);
  return reinterpret_cast<F*>(found);
}

}  // namespace

int main(int, char** arguments) {
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
  auto* plugin_malloc = function<void*(size_t)>(plugin, "plugin_malloc");
  auto* plugin_free = function<void(void*)>(plugin, "plugin_free");
  auto* address_of_malloc = function<const void*()>(plugin, "plugin_address_of_malloc");
  require(address_of_malloc() == reinterpret_cast<const void*>(&malloc), "the library has another malloc");
  free(plugin_malloc(100));
  plugin_free(malloc(100));
  auto* open_neighbour = function<void*()>(plugin, "plugin_open_neighbour");
  require(function<int()>(open_neighbour(), "neighbour")() == 7, "neighbour");
  return 0;
}
