// Loaded and unloaded again and again: allocates when loaded, in its thread-local object, and when
// unloaded.
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

namespace {

struct AtLoad {
  char* block = static_cast<char*>(calloc(1, 5000));
  std::vector<std::string> words = std::vector<std::string>(100, std::string(60, 'w'));
  ~AtLoad() { free(block); }
} at_load;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* plugin_block(size_t size) {
  void* block = malloc(size);
  if (block != nullptr) memset(block, 'p', size);
  return at_load.words[7] == std::string(60, 'w') && at_load.block[4999] == 0 ? block : nullptr;
}

extern "C" __attribute__((visibility("default"))) void plugin_free(void* block) {
  free(block);
}
