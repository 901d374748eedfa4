#include "calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "arena.h"

namespace {

constexpr SpaceKind kKinds[] = {
    {"space", "one owner, no lock, a cache", HUMMOCK_SPACE_TRY, HUMMOCK_SPACE_OWNER, 1024, 0},
    {"space-bare", "the same without the cache", HUMMOCK_SPACE_TRY, HUMMOCK_SPACE_OWNER, 0, 0},
    {"space-threads", "any thread, each with a cache", HUMMOCK_SPACE_TRY, HUMMOCK_SPACE_SPIN, 256, 0},
    {"space-small-pages", "as space, in small pages", HUMMOCK_SPACE_OFF, HUMMOCK_SPACE_OWNER, 1024, 0},
};

template <class Function>
Function* symbol(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) fail(2, "%s is not there: a space needs libhummock.so preloaded", name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

const SpaceKind* find_space_kind(const char* name) {
  for (const SpaceKind& kind : kKinds)
    if (strcmp(kind.name, name) == 0) return &kind;
  return nullptr;
}

SpaceCalls make_space(const SpaceKind& kind, size_t bytes, uint32_t* achieved) {
  const auto create = symbol<decltype(hummock_space_create)>("hummock_space_create");
  hummock_space_options_t options = {};
  options.size = sizeof options;
  options.name = kind.name;
  options.initial = bytes;
  options.populate = HUMMOCK_SPACE_REQUIRE;
  options.lock = HUMMOCK_SPACE_TRY;
  options.no_fork = HUMMOCK_SPACE_TRY;
  options.huge_pages = kind.huge_pages;
  options.threads = kind.threads;
  options.cache_blocks = kind.cache_blocks;
  options.cache_largest = kind.cache_largest;
  hummock_space_t* space = create(&options, achieved);
  if (space == nullptr) fail(3, "no space of %zu bytes: %s", bytes, strerror(errno));
  return {space, symbol<decltype(hummock_space_malloc)>("hummock_space_malloc"),
          symbol<decltype(hummock_space_free)>("hummock_space_free")};
}
