// The library that tests load and unload: it allocates when it is loaded and frees when it goes.
#ifndef HUMMOCK_TESTS_STRESS_PLUGIN_H
#define HUMMOCK_TESTS_STRESS_PLUGIN_H

#include <dlfcn.h>

#include <mutex>

#include "stress/stress.h"

namespace stress {

inline std::mutex loading;  // the loader's own lock is none that ThreadSanitizer sees

// Loads it, takes a block of its own memory and gives that back, and unloads it.
inline void load_plugin(const char* path) {
  loading.lock();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  loading.unlock();
  require(library != nullptr, "dlopen");
  auto* get = reinterpret_cast<void* (*)(size_t)>(dlsym(library, "plugin_block"));
  auto* give = reinterpret_cast<void (*)(void*)>(dlsym(library, "plugin_free"));
  void* block = get(5000);
  require(block != nullptr, "the library's own memory");
  give(block);
  const std::lock_guard guard(loading);
  dlclose(library);
}

}  // namespace stress

#endif
