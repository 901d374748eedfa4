// Libraries that come and go: others' that allocate, and the allocator itself.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <deque>

#include "robust.h"

namespace battery {
namespace {

// plugin.so beside this program.
void* load_plugin() {
  char path[PATH_MAX + 64] = {};
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  CHECK(length > 0);
  strcpy(strrchr(path, '/'), "/libbattery_plugin.so");
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) end(kFailed, "dlopen: %s", dlerror());
  return plugin;
}

using Make = void* (*)(size_t);

void plugin_loop() {
  const size_t before = resident();
  for (int i = 0; i < 1000; ++i) {
    void* plugin = load_plugin();
    const Make make = reinterpret_cast<Make>(dlsym(plugin, "plugin_make"));
    void* block = make(300);
    void* of_thread = nullptr;
    if (i % 10 == 0) on_thread([&] { of_thread = make(700); });
    CHECK(dlclose(plugin) == 0);
    check_filled(block, 300, 'p');
    call::free(block);
    call::free(of_thread);
  }
  check_resident(before, 8 * MiB, "after 1,000 times dlopen and dlclose");
}

void plugin_by_threads() {
  auto work = [] {
    for (int i = 0; i < 100; ++i) {
      void* plugin = load_plugin();
      call::free(reinterpret_cast<Make>(dlsym(plugin, "plugin_make"))(100));
      exercise(1, 30);
      CHECK(dlclose(plugin) == 0);
    }
  };
  std::deque<Thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (Thread& thread : threads) thread.join();
}

// ---- Hummock by dlopen ------------------------------------------------------------------------------

struct Hummock {
  void* library;
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*realloc)(void*, size_t);
  int (*is_active)();
};

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) end(kFailed, "no %s", name);
}

Hummock load_hummock() {
  const char* path = getenv("BATTERY_LIBRARY");
  if (path == nullptr || strstr(path, "hummock") == nullptr)
    end(kSkipped, "skipped: BATTERY_LIBRARY is not Hummock");
  Hummock h = {};
  h.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (h.library == nullptr) end(kFailed, "dlopen: %s", dlerror());
  look_up(h.library, "hummock_malloc", h.malloc);
  look_up(h.library, "hummock_free", h.free);
  look_up(h.library, "hummock_realloc", h.realloc);
  look_up(h.library, "hummock_is_active", h.is_active);
  return h;
}

void use(const Hummock& h) {
  CHECK(h.is_active() == 0);
  for (size_t size : {size_t{16}, size_t{1000}, 20 * KiB, 300 * KiB, 40 * MiB}) {
    char* theirs = filled(size, 't');
    char* ours = static_cast<char*>(h.malloc(size));
    CHECK(ours != nullptr);
    memset(ours, 'o', size);
    ours = static_cast<char*>(h.realloc(ours, size + 5000));
    CHECK(ours != nullptr);
    check_filled(ours, size, 'o');
    check_filled(theirs, size, 't');
    h.free(ours);
    call::free(theirs);
  }
}

void dlopened() {
  const Hummock h = load_hummock();
  use(h);
  for (int i = 0; i < 50; ++i) {
    void* left = nullptr;
    on_thread([&] {
      use(h);
      left = h.malloc(100);
    });
    h.free(left);
  }
  exercise(1);
}

void dlopened_often() {
  for (int i = 0; i < 100; ++i) {
    const Hummock h = load_hummock();
    use(h);
    on_thread([&h] { use(h); });
    CHECK(dlclose(h.library) == 0);
    exercise(1, 50);
  }
}

void dlopened_by_thread() {
  on_thread([] {
    const Hummock h = load_hummock();
    use(h);
    CHECK(dlclose(h.library) == 0);
  });
  use(load_hummock());
}

void dlopened_and_forked() {
  const Hummock h = load_hummock();
  void* block = h.malloc(100);
  for (int i = 0; i < 50; ++i) {
    const int child = fork();
    if (child == 0) {
      h.free(block);
      use(h);
      _exit(kPassed);
    }
    expect_success(child, "child");
  }
  h.free(block);
}

constexpr char kFamily[] = "loading";

constexpr Case kCases[] = {
    {.name = "plugin_loop",
     .family = kFamily,
     .what = "dlopen and dlclose of a library that allocates",
     .run = plugin_loop},
    {.name = "plugin_by_threads",
     .family = kFamily,
     .what = "the same by four threads",
     .run = plugin_by_threads},
    {.name = "dlopened",
     .family = kFamily,
     .what = "Hummock by dlopen beside libc's allocator, with threads",
     .run = dlopened,
     .preload = false},
    {.name = "dlopened_often",
     .family = kFamily,
     .what = "the same, dlopen and dlclose 100 times",
     .run = dlopened_often,
     .preload = false},
    {.name = "dlopened_by_thread",
     .family = kFamily,
     .what = "the same by a thread that ends",
     .run = dlopened_by_thread,
     .preload = false},
    {.name = "dlopened_and_forked",
     .family = kFamily,
     .what = "the same in forked children",
     .run = dlopened_and_forked,
     .preload = false},
};

}  // namespace

const Cases load_cases{kCases};

}  // namespace battery
