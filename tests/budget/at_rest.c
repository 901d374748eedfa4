/* What threads hold that do nothing any more; `at_rest MODE THREADS` prints "key=value" lines, sizes in
 * bytes. What is asserted of them stands in at_rest.py.
 *
 *   burst   each allocated and freed 60 KiB in blocks of each size, and sleeps
 *   turns   each freed one block of each size, and sleeps
 *   hold    each holds one block of each size, of which it has written the first byte; beside 400 MiB
 *   few     each holds twelve small blocks
 *   others  each has freed blocks of the main thread's, of each size */
#define _GNU_SOURCE
#include <pthread.h>

#include "figures.h"

enum { kSizes = 80, kMostThreads = 1000, kFew = 12 };
static size_t sizes[kSizes];
static pthread_barrier_t done, end;
static const char* mode;
static void** others; /* kOthers of each size, for each thread */
enum { kOthers = 16 };

/* Steps of 16 bytes up to 256, then eight to each doubling, up to 64 KiB. */
static void make_sizes(void) {
  for (size_t i = 0; i < kSizes; ++i) {
    const size_t step = i < 16 ? 0 : (i - 16) % 8 + 1;
    sizes[i] = i < 16 ? 16 * (i + 1) : ((size_t)256 << (i - 16) / 8) + step * ((size_t)32 << (i - 16) / 8);
  }
}

static char* touch(size_t size) {
  char* block = malloc(size);
  if (block == NULL) abort();
  *(volatile char*)block = 1;
  return block;
}

static void burst(void) {
  static const size_t kBytes = 60 << 10;
  void* blocks[60 * 1024 / 16];
  for (int i = 0; i < kSizes; ++i) {
    const size_t count = kBytes / sizes[i] + (kBytes < sizes[i]);
    for (size_t k = 0; k < count; ++k) blocks[k] = get(sizes[i]);
    for (size_t k = 0; k < count; ++k) free(blocks[k]);
  }
}

static void turns(void) {
  char* blocks[kSizes];
  for (int i = 0; i < kSizes; ++i) blocks[i] = get(sizes[i]);
  for (int i = 0; i < kSizes; ++i) free(blocks[i]);
}

static void hold(char** blocks) {
  for (int i = 0; i < kSizes; ++i) blocks[i] = touch(sizes[i]);
}

static void few(char** blocks) {
  for (int i = 0; i < kFew; ++i) blocks[i] = touch(sizes[i * 2]);
}

static void free_others(void** blocks) {
  for (int i = 0; i < kSizes * kOthers; ++i) free(blocks[i]);
}

static void* run(void* argument) {
  char* held[kSizes];
  const size_t self = (size_t)argument;
  if (strcmp(mode, "burst") == 0) burst();
  if (strcmp(mode, "turns") == 0) turns();
  if (strcmp(mode, "hold") == 0) hold(held);
  if (strcmp(mode, "few") == 0) few(held);
  if (strcmp(mode, "others") == 0) free_others(others + self * kSizes * kOthers);
  pthread_barrier_wait(&done);
  pthread_barrier_wait(&end);
  if (strcmp(mode, "hold") == 0) {
    for (int i = 0; i < kSizes; ++i) free(held[i]);
  }
  if (strcmp(mode, "few") == 0) {
    for (int i = 0; i < kFew; ++i) free(held[i]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static pthread_t threads[kMostThreads];
  const size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
  if (count == 0 || count > kMostThreads) return 2;
  mode = argv[1];
  make_sizes();
  char* ballast = NULL;
  if (strcmp(mode, "hold") == 0) {
    /* Blocks as a program has them, not one mapping. */
    for (size_t bytes = 0; bytes < 400 * kMiB; bytes += 1000 + sizeof ballast) {
      char* block = get(1000);
      memcpy(block, &ballast, sizeof ballast);
      ballast = block;
    }
  }
  const size_t before = resident();
  if (strcmp(mode, "others") == 0) {
    others = books(count * kSizes * kOthers * sizeof(void*));
    for (size_t i = 0; i < count * kSizes * kOthers; ++i) others[i] = get(sizes[i / kOthers % kSizes]);
  }
  pthread_barrier_init(&done, NULL, (unsigned)count + 1);
  pthread_barrier_init(&end, NULL, (unsigned)count + 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  for (size_t i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &attributes, run, (void*)i) != 0) abort();
  }
  pthread_barrier_wait(&done);
  pause_ms(300);
  const size_t now = resident();
  say("left", now > before ? now - before : 0);
  pthread_barrier_wait(&end);
  for (size_t i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  return 0;
}
