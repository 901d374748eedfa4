// sm::GenericAllocator as long as the program defines none: smmalloc.h names these symbols. Weak, so that
// a program linked to libhummock.a may define them, too.
#include "hummock/proxy.h"

#define HUMMOCK_REPLACEABLE extern "C" __attribute__((weak, visibility("default")))

HUMMOCK_REPLACEABLE void* hummock_smmalloc_invalid() {
  return nullptr;
}
HUMMOCK_REPLACEABLE bool hummock_smmalloc_is_valid(void*) {
  return true;  // there is nothing to an instance
}
HUMMOCK_REPLACEABLE void* hummock_smmalloc_create() {
  return nullptr;
}
HUMMOCK_REPLACEABLE void hummock_smmalloc_destroy(void*) {}
HUMMOCK_REPLACEABLE void* hummock_smmalloc_alloc(void* instance, size_t bytes, size_t alignment) {
  return hummock_proxy_default_allocate(instance, bytes, alignment);
}
HUMMOCK_REPLACEABLE void hummock_smmalloc_free(void* instance, void* block) {
  hummock_proxy_default_release(instance, block);
}
HUMMOCK_REPLACEABLE void* hummock_smmalloc_realloc(void* instance, void* block, size_t bytes,
                                                   size_t alignment) {
  return hummock_proxy_default_reallocate(instance, block, bytes, alignment);
}
HUMMOCK_REPLACEABLE size_t hummock_smmalloc_usable_space(void* instance, void* block) {
  return hummock_proxy_default_usable_size(instance, block);
}
