/* hummock.dll through its import library, from C. */
#include <errno.h>
#include <hummock/hummock.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "check.h"

enum { kBlocks = 2000, kThreads = 4 };

static void* shared_blocks[kThreads][kBlocks];

static DWORD WINAPI fill(void* number) {
  void** blocks = shared_blocks[(size_t)number];
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = hummock_malloc((size_t)i % 700 + 1);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], i & 255, (size_t)i % 700 + 1);
  }
  return 0;
}

static void family(void) {
  char* block = hummock_calloc(100, 10);
  for (int i = 0; i < 1000; ++i) CHECK(block[i] == 0);
  memset(block, 7, 1000);
  block = hummock_realloc(block, 3000000);
  CHECK(block != NULL && block[0] == 7 && block[999] == 7);
  block = hummock_realloc(block, 40u << 20);
  CHECK(block != NULL && block[999] == 7);
  block[(40u << 20) - 1] = 1;
  block = hummock_realloc(block, 30u << 20);
  CHECK(block != NULL && block[999] == 7);
  block = hummock_realloc(block, 35u << 20);
  CHECK(block != NULL && block[999] == 7);
  block[(35u << 20) - 1] = 1;
  block = hummock_realloc(block, 10);
  CHECK(block != NULL && block[9] == 7);
  hummock_free(block);
  void* aligned = NULL;
  CHECK(hummock_posix_memalign(&aligned, 4096, 100) == 0 && (uintptr_t)aligned % 4096 == 0);
  hummock_free_aligned_sized(aligned, 4096, 100);
  aligned = hummock_aligned_alloc(64u << 20, 100); /* more than any region */
  CHECK(aligned != NULL && (uintptr_t)aligned % (64u << 20) == 0);
  hummock_free(aligned);
  errno = 0;
  CHECK(hummock_malloc(SIZE_MAX / 2 + 1) == NULL && errno == ENOMEM);
  CHECK(hummock_calloc(SIZE_MAX / 2, 3) == NULL);
  hummock_free(NULL);
}

static void heaps(void) {
  hummock_heap_t* heap = hummock_heap_create();
  CHECK(heap != NULL);
  for (size_t i = 1; i < 5000; ++i) CHECK(hummock_heap_malloc(heap, i * 7 % 3000) != NULL);
  hummock_heap_stats_t stats = {.size = sizeof stats};
  CHECK(hummock_heap_stats(heap, &stats) == 0 && stats.live_blocks == 4999);
  hummock_heap_destroy(heap);
}

static void threads(void) {
  HANDLE handles[kThreads];
  for (size_t i = 0; i < kThreads; ++i) handles[i] = CreateThread(NULL, 0, fill, (void*)i, 0, NULL);
  WaitForMultipleObjects(kThreads, handles, TRUE, INFINITE);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kBlocks; ++i) {
      const unsigned char* block = shared_blocks[t][i];
      CHECK(block[0] == (i & 255) && block[i % 700] == (i & 255));
      hummock_free(shared_blocks[t][i]);
    }
  }
}

int main(void) {
  CHECK(strcmp(hummock_version(), "1.0.0") == 0);
  CHECK(hummock_is_active() == 0); /* the process's malloc is the system's */
  family();
  heaps();
  threads();
  hummock_trim(0);
  hummock_stats_t stats = {.size = sizeof stats};
  CHECK(hummock_stats(&stats) == 0 && stats.live < 100000 && stats.resident > 0 && stats.dirty < (1 << 20));
  char value[32];
  CHECK(hummock_option_get("decay_ms", value, sizeof value) == 0 && strcmp(value, "250") == 0);
  puts("c_interface: passed");
  return 0;
}
