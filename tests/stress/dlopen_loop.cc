// Arguments: a plugin to load and unload in a loop from several threads, and optionally libhummock.so
// itself, loaded by dlopen beside the process's malloc.
#include <dlfcn.h>

#include "stress/stress.h"

namespace {

template <class Function>
Function find(void* library, const char* name) {
  Function function = reinterpret_cast<Function>(dlsym(library, name));
  stress::require(function != nullptr, name);
  return function;
}

void* open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fprintf(stderr, "%s\n", dlerror());
  stress::require(library != nullptr, "dlopen");
  return library;
}

void loop_plugin(const char* path, size_t rounds) {
  stress::run_threads(4, [&](size_t self) {
    for (size_t round = 0; round < rounds; ++round) {
      void* library = open(path);
      char* block = static_cast<char*>(find<void* (*)(size_t)>(library, "plugin_block")(100 + round));
      stress::require(block != nullptr, "the plugin's own memory");
      if (round % 2 == self % 2) find<void (*)(void*)>(library, "plugin_free")(block);
      dlclose(library);
      if (round % 2 == self % 2) continue;
      stress::require(block[0] == 'p' && block[99 + round] == 'p', "a block outlives its plugin");
      free(block);
    }
  });
}

// Blocks of a library loaded late: from threads that exist already and from new ones.
void loop_library(const char* path, size_t rounds) {
  for (size_t round = 0; round < rounds; ++round) {
    stress::run_threads(3, [&](size_t self) {
      void* library = open(path);
      auto* get = find<void* (*)(size_t)>(library, "hummock_malloc");
      auto* give = find<void (*)(void*)>(library, "hummock_free");
      void* blocks[100];
      for (size_t i = 0; i < 100; ++i) {
        blocks[i] = get(i * 40 + self);
        stress::require(blocks[i] != nullptr, "memory of the loaded library");
        memset(blocks[i], 'q', i * 40 + self);
      }
      for (void* block : blocks) give(block);
      dlclose(library);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  support::HangGuard guard(200);
  if (argc < 2) return 2;
  loop_plugin(argv[1], support::scaled(1500, 20));
  if (argc > 2) loop_library(argv[2], support::scaled(1500, 20));
}
