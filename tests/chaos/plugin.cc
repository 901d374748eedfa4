// Loaded and unloaded by the chaos program: allocates when it is loaded, when it is asked, and when it goes.
#include <stdlib.h>
#include <string.h>

namespace {

struct AtLoad {
  char* blocks[40];
  AtLoad() {
    for (size_t i = 0; i < 40; ++i) blocks[i] = static_cast<char*>(calloc(1, 17 * i * i + 1));
  }
  ~AtLoad() {
    for (char* block : blocks) free(block);
  }
} at_load;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* plugin_block(size_t size) {
  return at_load.blocks[3] != nullptr && *at_load.blocks[3] == 0 ? malloc(size) : nullptr;
}
