// What the test programs share: checks, and the DLL as the engine takes it.
#ifndef HUMMOCK_TESTS_WINDOWS_GAME_H
#define HUMMOCK_TESTS_WINDOWS_GAME_H

#include <windows.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      printf("%s:%d: not so: %s (error %lu)\n", __FILE__, __LINE__, #condition, GetLastError()); \
      fflush(stdout);                                                                            \
      ExitProcess(1);                                                                            \
    }                                                                                            \
  } while (0)

struct Dll {
  HMODULE module;
  size_t(__stdcall* total_committed)();
  size_t(__stdcall* total_reserved)();
  size_t(__stdcall* flush_cache)(size_t);
  void(__stdcall* flush_cache_all)();
  size_t(__stdcall* size)(void*);
  void*(__stdcall* alloc)(size_t);
  void(__stdcall* free)(void*);
  size_t(__stdcall* size_a)(void*, size_t);
  void*(__stdcall* alloc_a)(size_t, size_t);
  void(__stdcall* free_a)(void*);
  void(__stdcall* enable_huge_pages)();
};

template <class Function>
void find(Dll* dll, Function* out, const char* x64, const char* x86) {
  FARPROC found = GetProcAddress(dll->module, sizeof(void*) == 8 ? x64 : x86);
  if (found == nullptr) printf("there is no %s\n", x64);
  CHECK(found != nullptr);
  *out = reinterpret_cast<Function>(reinterpret_cast<void*>(found));
}

// By name from dll\, as -malloc=<name> has the game do.
inline Dll load(const char* name) {
  char path[MAX_PATH];
  snprintf(path, sizeof path, "dll\\%s.dll", name);
  Dll dll = {};
  dll.module = LoadLibraryA(path);
  CHECK(dll.module != nullptr);
  find(&dll, &dll.total_committed, "MemTotalCommitted", "_MemTotalCommitted@0");
  find(&dll, &dll.total_reserved, "MemTotalReserved", "_MemTotalReserved@0");
  find(&dll, &dll.flush_cache, "MemFlushCache", "_MemFlushCache@4");
  find(&dll, &dll.flush_cache_all, "MemFlushCacheAll", "_MemFlushCacheAll@0");
  find(&dll, &dll.size, "MemSize", "_MemSize@4");
  find(&dll, &dll.alloc, "MemAlloc", "_MemAlloc@4");
  find(&dll, &dll.free, "MemFree", "_MemFree@4");
  find(&dll, &dll.size_a, "MemSizeA", "_MemSizeA@8");
  find(&dll, &dll.alloc_a, "MemAllocA", "_MemAllocA@8");
  find(&dll, &dll.free_a, "MemFreeA", "_MemFreeA@4");
  find(&dll, &dll.enable_huge_pages, "EnableHugePages", "_EnableHugePages@0");
  return dll;
}

#endif  // HUMMOCK_TESTS_WINDOWS_GAME_H
