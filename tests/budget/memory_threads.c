/* The workloads of budget_memory that have threads: what is left of what they freed, or others freed for
 * them. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "figures.h"
#include "memory.h"

/* What a program that "goes on a little" does: a hundred small blocks each 10 ms, freed the next time. As
 * many as in a second; on a busy machine that takes longer. */
void go_on(void) {
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
void parked(size_t stays, size_t size) {
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

void asleep(void) {
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
void many_threads(size_t leave) {
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

void idle_producer(void) {
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

void freed_in_parts(size_t size, size_t keep) {
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
