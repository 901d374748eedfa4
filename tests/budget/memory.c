/* Workloads whose resident memory is measured; `memory MODE [NUMBER]` prints "key=value" lines, sizes in
 * bytes. What is asserted of them stands in memory.py. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "figures.h"
#include "memory.h"

static const size_t kIdleRest = (size_t)16 << 20; /* the ceiling in memory.py */

/* ---- Shrinking reallocations -------------------------------------------------------------------- */

static char* shrunk(size_t size) {
  char* block = malloc(20000);
  if (block == NULL) abort();
  for (size_t at = 0; at < 20000; at += 4096) block[at] = 1;
  block = realloc(block, size);
  if (block == NULL) abort();
  return block;
}

static void mmtest(void) {
  enum { kBlocks = 3000000 };
  char** blocks = malloc(kBlocks * sizeof *blocks);
  const double start = seconds();
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) blocks[i] = shrunk(1);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
  printf("seconds=%.3f\n", seconds() - start);
  free(blocks);
  say("peak", peak());
}

static void shrink(size_t size) {
  enum { kBlocks = 100000 };
  char** blocks = books(kBlocks * sizeof *blocks);
  const size_t before = resident();
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = shrunk(size);
    memset(blocks[i], 2, size);
  }
  say("payload", kBlocks * size);
  say("resident", resident() - before);
}

static void shuffle(char** blocks, size_t count) {
  for (size_t i = count - 1; i > 0; --i) {
    const size_t other = draw(i + 1);
    char* block = blocks[i];
    blocks[i] = blocks[other];
    blocks[other] = block;
  }
}

/* ---- 500 MB come and go ------------------------------------------------------------------------- */

static void come_and_go(const char* how) {
  const size_t count = 2000000;
  char** blocks = books(count * sizeof *blocks);
  free(get(100));
  const size_t before = resident();
  size_t total = 0, last = 0;
  for (; last < count && total < 500000000; ++last) {
    const size_t size = 1 + draw(512);
    blocks[last] = get(size);
    total += size;
  }
  say("full", resident() - before);
  shuffle(blocks, last);
  for (size_t i = 0; i < last; ++i) free(blocks[i]);
  if (strcmp(how, "active") == 0) go_on();
  if (strcmp(how, "trim") == 0) malloc_trim(0);
  for (int i = 0; i < 30 && strcmp(how, "few") == 0; ++i) free(get(100));
  size_t after = resident();
  /* Nothing is done here, so it is up to another thread, which must get its turn: each tenth of a second we
   * look. */
  for (int i = 0; i < 300 && strcmp(how, "idle") == 0 && after > before + kIdleRest; ++i) {
    pause_ms(100);
    after = resident();
  }
  say("left", after > before ? after - before : 0);
}

/* Four bursts of 200 MB, with pauses longer than the decay time (memory.py). After each all is freed. */
static void bursts(size_t size) {
  const size_t count = 200000000 / size;
  char** blocks = books(count * sizeof *blocks);
  free(get(100));
  const size_t before = resident();
  for (int burst = 0; burst < 4; ++burst) {
    if (burst != 0) pause_ms(500);
    for (size_t i = 0; i < count; ++i) blocks[i] = get(size);
    for (size_t i = 0; i < count; ++i) free(blocks[i]);
  }
  const size_t after = resident();
  say("left", after > before ? after - before : 0);
}

/* 500 MB in blocks of 4 to 20 MB, freed in order, with blocks of 70,000 bytes between them that stay. */
static void large(void) {
  enum { kBlocks = 40 };
  char* blocks[kBlocks];
  free(get(100));
  const size_t before = resident();
  for (int i = 0; i < kBlocks; ++i) {
    const size_t size = 4200000 + draw(16000000);
    blocks[i] = malloc(size);
    if (blocks[i] == NULL) abort();
    for (size_t at = 0; at < size; at += 4096) blocks[i][at] = 1;
    get(70000);
  }
  say("full", resident() - before);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  say("live", kBlocks * 70000);
  say("left", resident() - before);
}

/* 300 MB in blocks of 64 to 1,024 bytes, of which one of 64 lives on, after a trim. */
static void sparse(void) {
  const size_t count = 600000;
  char** blocks = books(count * sizeof *blocks);
  free(get(100));
  const size_t before = resident();
  size_t total = 0, last = 0, live = 0;
  for (; last < count && total < 300000000; ++last) {
    const size_t size = 64 + draw(961);
    blocks[last] = get(size);
    total += size;
    if (last % 64 == 0) live += size;
  }
  say("full", resident() - before);
  for (size_t i = 0; i < last; ++i) {
    if (i % 64 != 0) free(blocks[i]);
  }
  malloc_trim(0);
  say("live", live);
  say("left", resident() - before);
}

/* 200 MB of blocks of one size; the thread frees all but one of `keep`, in order or at random. */
static void own(size_t size, size_t keep, int in_order) {
  const size_t count = ((size_t)200 << 20) / size;
  char** blocks = books(count * sizeof *blocks);
  free(get(100));
  const size_t before = resident();
  size_t goes = 0;
  for (size_t i = 0; i < count; ++i) {
    char* block = get(size);
    if (i % keep != 0) blocks[goes++] = block;
  }
  say("full", resident() - before);
  if (!in_order) shuffle(blocks, goes);
  for (size_t i = 0; i < goes; ++i) free(blocks[i]);
  say("pages", (count / keep + 1) * 4096);
  say("left", resident() - before);
}

/* ---- Start, limits ------------------------------------------------------------------------------ */

static void start(void) {
  free(malloc(100));
  const size_t memory = resident();
  say("resident", memory);
  say("virtual", field("/proc/self/status", "VmSize:"));
}

/* Buffers grow by realloc in turn, in steps of up to so many bytes, all of them live. Resident by live at the
 * worst moment, once there is enough for the ratio to mean something. */
static void turns(size_t step) {
  enum { kBuffers = 600, kLong = 1000000 };
  static char* buffer[kBuffers];
  static size_t length[kBuffers];
  const size_t before = resident();
  size_t live = 0, at = 0;
  double worst = 0;
  for (int growing = kBuffers; growing != 0;) {
    growing = 0;
    for (int i = 0; i < kBuffers; ++i) {
      if (length[i] >= kLong) continue;
      const size_t more = 1 + draw(step);
      buffer[i] = realloc(buffer[i], length[i] + more);
      if (buffer[i] == NULL) abort();
      memset(buffer[i] + length[i], 1, more);
      length[i] += more;
      live += more;
      ++growing;
      if (live < 128 * kMiB || i != 0) continue; /* a look takes longer than all else */
      const double ratio = (double)(resident() - before) / (double)live;
      if (ratio > worst) worst = ratio, at = live;
    }
  }
  say("percent", (size_t)(worst * 100));
  say("live", at);
}

static void* mixed_thread(void* argument) {
  char* blocks[200] = {NULL};
  uint64_t seed = (uint64_t)(size_t)argument * 977 + 5;
  for (int i = 0; i < 20000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    char** block = &blocks[(seed >> 33) % 200];
    const size_t size = (seed >> 40) % (i % 100 == 0 ? 300000 : 3000) + 1;
    free(*block);
    *block = malloc(size);
    if (*block == NULL) abort();
    (*block)[0] = (*block)[size - 1] = 1;
  }
  for (int i = 0; i < 200; ++i) free(blocks[i]);
  return NULL;
}

/* A bit of everything, to see that it runs at all. */
static void mixed(void) {
  pthread_t threads[4];
  for (size_t t = 0; t < 4; ++t) pthread_create(&threads[t], NULL, mixed_thread, (void*)t);
  for (int t = 0; t < 4; ++t) pthread_join(threads[t], NULL);
  for (size_t size = kMiB; size <= 100 * kMiB; size *= 3) {
    char* block = realloc(calloc(1, size), 2 * size);
    if (block == NULL || block[size - 1] != 0) abort();
    free(block);
  }
  say("done", 1);
}

int main(int argc, char** argv) {
  alarm(1500);
  const char* mode = argc > 1 ? argv[1] : "";
  const size_t number = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
  if (strcmp(mode, "mmtest") == 0)
    mmtest();
  else if (strcmp(mode, "shrink") == 0)
    shrink(number);
  else if (strcmp(mode, "go") == 0)
    come_and_go(argc > 2 ? argv[2] : "");
  else if (strcmp(mode, "bursts") == 0)
    bursts(number);
  else if (strcmp(mode, "large") == 0)
    large();
  else if (strcmp(mode, "turns") == 0)
    turns(number);
  else if (strcmp(mode, "sparse") == 0)
    sparse();
  else if (strcmp(mode, "own") == 0 && argc == 5)
    own(number, strtoul(argv[3], NULL, 0), strcmp(argv[4], "in order") == 0);
  else if (strcmp(mode, "parked") == 0)
    parked(number, argc > 3 ? strtoul(argv[3], NULL, 0) : 0);
  else if (strcmp(mode, "asleep") == 0)
    asleep();
  else if (strcmp(mode, "threads") == 0)
    many_threads(number);
  else if (strcmp(mode, "producer") == 0)
    idle_producer();
  else if (strcmp(mode, "parts") == 0)
    freed_in_parts(number, strtoul(argv[3], NULL, 0));
  else if (strcmp(mode, "start") == 0)
    start();
  else if (strcmp(mode, "mixed") == 0)
    mixed();
  else
    return 2;
  return 0;
}
