// A library whose malloc and free are those that dlopen gave it.
#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* plugin_malloc(size_t size) {
  return malloc(size);
}
EXPORT void plugin_free(void* block) {
  free(block);
}
EXPORT const void* plugin_address_of_malloc() {
  return reinterpret_cast<const void*>(&malloc);
}
// By name alone: it stands in a folder that only this library's RUNPATH names.
EXPORT void* plugin_open_neighbour() {
  void* volatile library = dlopen("libhummock_neighbour.so", RTLD_NOW);  // not by a jump: the caller counts
  return library;
}
