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

static const size_t kIdleRest = (size_t)16 << 20; /* the ceiling in memory.py */
/* What a program that "goes on a little" does: a hundred small blocks each 10 ms, freed the next time. As
 * many as in a second; on a busy machine that takes longer. */
static void go_on(void) {
  static char* some[100];
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i) {
      free(some[i]);
      some[i] = get(1 + draw(2000));
    }
    pause_ms(10);
  }
  for (int i = 0; i < 100; ++i) {
    free(some[i]);
    some[i] = NULL;
  }
}

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
  for (size_t i = last - 1; i > 0; --i) {
    const size_t other = draw(i + 1);
    char* block = blocks[i];
    blocks[i] = blocks[other];
    blocks[other] = block;
  }
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

/* ---- Threads ------------------------------------------------------------------------------------ */

enum { kParked = 64, kEach = 4000 };
static char* parked_blocks[kParked][kEach];
static size_t parked_sizes[kParked][kEach];
static pthread_barrier_t barrier;

static void meet(void) {
  pthread_barrier_wait(&barrier);
}

/* The other threads take their blocks, between two meetings; returns what was resident before. */
static size_t let_them_take(void) {
  free(get(100));
  meet();
  const size_t before = resident();
  meet();
  meet();
  say("full", resident() - before);
  return before;
}

static void* park(void* argument) {
  const size_t self = (size_t)argument;
  meet();
  meet();
  for (int i = 0; i < kEach; ++i) parked_blocks[self][i] = get(parked_sizes[self][i]);
  meet();
  meet();
  return NULL;
}

/* NUMBER: which sixteenth of each thread's blocks stays: 0 the first, 15 the last, 16 each sixteenth
 * block of all. `size`: of all blocks, 0 for a mixture of all sizes up to 1 KiB. */
static void parked(size_t stays, size_t size) {
  pthread_t threads[kParked];
  memset(parked_blocks, 1, sizeof parked_blocks);
  for (int t = 0; t < kParked; ++t) {
    for (int i = 0; i < kEach; ++i) parked_sizes[t][i] = size != 0 ? size : 16 + draw(1024);
  }
  pthread_barrier_init(&barrier, NULL, kParked + 1);
  for (size_t t = 0; t < kParked; ++t) pthread_create(&threads[t], NULL, park, (void*)t);
  const size_t before = let_them_take();
  size_t live = 0;
  for (int t = 0; t < kParked; ++t) {
    for (int i = 0; i < kEach; ++i) {
      if (stays < 16 ? (size_t)i * 16 / kEach == stays : i % 16 == 0) {
        live += parked_sizes[t][i];
      } else {
        free(parked_blocks[t][i]);
      }
    }
  }
  go_on();
  say("live", live);
  say("resident", resident() - before);
  meet();
  for (int t = 0; t < kParked; ++t) pthread_join(threads[t], NULL);
}

/* 64 threads allocate 300 KiB of each of 80 sizes, free all of it, three times, and then wait. */
static void use_size(size_t size, char** blocks, unsigned* seed) {
  const size_t count = 300 * 1024 / size + 4;
  for (size_t i = 0; i < count; ++i) blocks[i] = get(size);
  for (size_t i = count - 1; i > 0; --i) {
    const size_t other = (size_t)rand_r(seed) % (i + 1);
    char* block = blocks[i];
    blocks[i] = blocks[other];
    blocks[other] = block;
  }
  for (size_t i = 0; i < count / 2; ++i) free(blocks[i]);
  char* again = get(size);
  for (size_t i = count / 2; i < count; ++i) free(blocks[i]);
  free(again);
}

static void* use_sizes(void* argument) {
  char** blocks = argument;
  unsigned seed = 1;
  meet();
  meet();
  for (int round = 0; round < 3; ++round) {
    for (size_t size = 16; size < 256; size += 16) use_size(size, blocks, &seed);
    for (size_t size = 256; size < 65536; size *= 2) {
      for (size_t part = 8; part < 16; ++part) use_size(size / 8 * part, blocks, &seed);
    }
  }
  meet();
  meet();
  return NULL;
}

static void asleep(void) {
  const size_t most = 300 * 1024 / 16 + 4;
  pthread_t threads[kParked];
  char** blocks = books(kParked * most * sizeof *blocks);
  pthread_barrier_init(&barrier, NULL, kParked + 1);
  for (size_t t = 0; t < kParked; ++t) pthread_create(&threads[t], NULL, use_sizes, blocks + t * most);
  const size_t before = let_them_take();
  say("left", resident() - before);
  meet();
  for (int t = 0; t < kParked; ++t) pthread_join(threads[t], NULL);
}

static void* short_life(void* argument) {
  char** left = argument;
  char* own[50];
  for (int i = 0; i < 50; ++i) own[i] = get(1 + draw(3000));
  for (int i = 0; i < 50; ++i) free(own[i]);
  for (int i = 0; left != NULL && i < 20; ++i) left[i] = get(1 + draw(3000));
  return NULL;
}

/* NUMBER 0: the threads free what is theirs; 1: they leave blocks, which the main thread frees. */
static void many_threads(size_t leave) {
  char* left[20];
  const size_t before = resident();
  for (int i = 0; i < 10000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_life, leave != 0 ? left : NULL) != 0) abort();
    pthread_join(thread, NULL);
    for (int k = 0; leave != 0 && k < 20; ++k) free(left[k]);
  }
  if (leave != 0) malloc_trim(0);  // what is free, but within the budget of kept memory, is not stranded
  const size_t after = resident();
  say("left", after > before ? after - before : 0);
}

static char** produced;
static size_t produced_size = 100;
static void* produce(void* argument) {
  const size_t count = *(size_t*)argument;
  free(get(100));
  meet();
  meet();
  for (size_t i = 0; i < count; ++i) produced[i] = get(produced_size);
  meet();
  meet(); /* idle from here on, until the end */
  return NULL;
}

static void idle_producer(void) {
  size_t count = 3000000;
  pthread_t thread;
  produced = books(count * sizeof *produced);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, produce, &count);
  const size_t before = let_them_take();
  for (size_t i = 0; i < count; ++i) free(produced[i]);
  go_on();
  const size_t after = resident();
  say("left", after > before ? after - before : 0);
  meet();
  pthread_join(thread, NULL);
}

/* Eight threads free what an idle one took, each a part, in order; one block of `keep` stays. Of what the
 * program has left, it touches nothing more. */
enum { kFreeing = 8 };
static size_t produced_count, produced_keep;
static void* free_part(void* argument) {
  const size_t part = (size_t)argument;
  for (size_t i = produced_count * part / kFreeing; i < produced_count * (part + 1) / kFreeing; ++i) {
    if (i % produced_keep != 0) free(produced[i]);
  }
  return NULL;
}

static void freed_in_parts(size_t size, size_t keep) {
  pthread_t owner, threads[kFreeing];
  produced_size = size;
  produced_keep = keep;
  produced_count = ((size_t)200 << 20) / size;
  produced = books(produced_count * sizeof *produced);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&owner, NULL, produce, &produced_count);
  const size_t before = let_them_take();
  for (size_t t = 0; t < kFreeing; ++t) pthread_create(&threads[t], NULL, free_part, (void*)t);
  for (int t = 0; t < kFreeing; ++t) pthread_join(threads[t], NULL);
  const size_t after = resident();
  say("pages", (produced_count / keep + 1) * 4096);
  say("left", after > before ? after - before : 0);
  meet();
  pthread_join(owner, NULL);
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
  else if (strcmp(mode, "turns") == 0)
    turns(number);
  else if (strcmp(mode, "sparse") == 0)
    sparse();
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
