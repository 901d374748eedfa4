// A program as any is, which knows nothing of Hummock: its C run time's malloc, free, new and delete in all
// their forms. At its end it asks whether a hummock.dll is in the process, and what that says it has served.
#include <direct.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <map>
#include <new>
#include <string>
#include <vector>

#include "check.h"
#include "hummock/hummock.h"

namespace {

template <class F>
F* of_dll(const char* name) {
  HMODULE dll = GetModuleHandleA("hummock.dll");
  return dll == nullptr ? nullptr : reinterpret_cast<F*>(reinterpret_cast<void*>(GetProcAddress(dll, name)));
}

size_t live_on_hummock() {
  auto* stats = of_dll<int(hummock_stats_t*)>("hummock_stats");
  hummock_stats_t now = {};
  now.size = sizeof now;
  if (stats != nullptr) stats(&now);
  return now.live;
}

void family() {
  auto* block = static_cast<char*>(calloc(100, 10));
  for (int i = 0; i < 1000; ++i) CHECK(block[i] == 0);
  memset(block, 7, 1000);
  block = static_cast<char*>(realloc(block, 3'000'000));
  CHECK(block != nullptr && block[999] == 7 && _msize(block) >= 3'000'000);
#ifdef _UCRT  // the import library of the other lacks it
  block = static_cast<char*>(_recalloc(block, 1000, 4000));
  CHECK(block[999] == 7 && block[3'999'999] == 0);
  auto* used = static_cast<char*>(malloc(16));
  memset(used, 7, 16);
  free(used);
  auto* grown = static_cast<char*>(_recalloc(calloc(10, 1), 16, 1));
  for (int i = 0; i < 16; ++i) CHECK(grown[i] == 0);
  free(grown);
#endif
  CHECK(realloc(block, 0) == nullptr);
  free(nullptr);
  errno = 0;
  volatile size_t most = SIZE_MAX / 2 + 1;
  CHECK(malloc(most) == nullptr && errno == ENOMEM);
  CHECK(calloc(most, 3) == nullptr);
}

void aligned() {
  for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    auto* block = static_cast<char*>(_aligned_malloc(1000, alignment));
    CHECK(reinterpret_cast<uintptr_t>(block) % alignment == 0);
    memset(block, 5, 1000);
    block = static_cast<char*>(_aligned_realloc(block, 100'000, alignment));
    CHECK(reinterpret_cast<uintptr_t>(block) % alignment == 0 && block[999] == 5);
    _aligned_free(block);
    block = static_cast<char*>(_aligned_offset_malloc(1000, alignment, 24));
    CHECK(reinterpret_cast<uintptr_t>(block + 24) % alignment == 0);
    _aligned_free(block);
  }
}

// Blocks that the run time takes itself.
void from_inside() {
  char* copy = _strdup("a copy");
  CHECK(strcmp(copy, "a copy") == 0);
  free(copy);
  char* folder = _getcwd(nullptr, 0);
  CHECK(folder != nullptr);
  folder = static_cast<char*>(realloc(folder, 10'000));
  free(folder);
  char* full = _fullpath(nullptr, "x", 0);
  CHECK(full != nullptr && _msize(full) > 2);
  free(full);
  FILE* file = tmpfile();
  if (file != nullptr) {
    fprintf(file, "%d", 5);
    fclose(file);
  }
}

DWORD WINAPI churn(void* seed) {
  auto random = reinterpret_cast<uintptr_t>(seed);
  std::vector<std::string> strings(500);
  std::map<size_t, std::vector<int>> lists;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 1103515245 + 12345;
    strings[random / 65536 % 500] = std::string(random / 1024 % 3000, 'x');
    lists[random / 4096 % 300].push_back(i);
  }
  return 0;
}

void threads() {
  HANDLE handles[4];
  for (uintptr_t i = 0; i < 4; ++i)
    handles[i] = CreateThread(nullptr, 0, churn, reinterpret_cast<void*>(i + 1), 0, nullptr);
  WaitForMultipleObjects(4, handles, TRUE, INFINITE);
}

void refused_new() {
  volatile size_t most = SIZE_MAX / 2;
  bool thrown = false;
  try {
    delete[] new char[most];
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(new (std::nothrow) char[most] == nullptr);
  int* number = new int(3);
  CHECK(*number == 3);
  delete number;
}

}  // namespace

int main(int count, char** arguments) {
  family();
  aligned();
  from_inside();
  threads();
  refused_new();
  const size_t before = live_on_hummock();
  static void* (*volatile take)(size_t) = malloc;  // by its address, too
  void* block = take(5'000'000);
  CHECK(block != nullptr);
  const bool malloc_served = live_on_hummock() >= before + 5'000'000;
  free(block);
  printf("passed: malloc of %s\n", malloc_served ? "hummock" : "the system");
  for (int i = 1; i < count; ++i) printf("[%s]\n", arguments[i]);
  return count > 1 ? count : 0;
}
