// A library that allocates when loaded, when called, and frees when unloaded.
#include <stdlib.h>
#include <string.h>

namespace {

struct Holder {
  char* block = static_cast<char*>(memset(malloc(5000), 'p', 5000));
  ~Holder() { free(block); }
} holder;

thread_local char* of_thread = nullptr;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* plugin_make(size_t size) {
  if (of_thread == nullptr) of_thread = holder.block;
  return memset(malloc(size), of_thread[0], size);
}
