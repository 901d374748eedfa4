// Threads that hand blocks to one another, blocks of all kinds of sizes, a fork. It ends with 0 when all of
// them held what was written, and ran on Hummock.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak hummock_is_active
int hummock_is_active(void);

enum { kThreads = 4, kSlots = 512, kRounds = 60000 };

static _Atomic(unsigned char*) shared[kSlots];
static _Atomic int broken;

static size_t size_of(unsigned* seed) {
  *seed = *seed * 1103515245u + 12345;
  const unsigned drawn = *seed >> 8;
  return drawn % 200 == 0 ? 70000 + drawn % 900000 : 16 + drawn % 5000;
}

// The first words say how long the block is, its last byte what it holds.
static unsigned char* make(unsigned* seed) {
  const size_t size = size_of(seed);
  unsigned char* block = malloc(size);
  if (block == NULL) return NULL;
  memcpy(block, &size, sizeof size);
  block[sizeof size] = block[size - 1] = (unsigned char)size;
  return block;
}

static void end(unsigned char* block) {
  if (block == NULL) return;
  size_t size;
  memcpy(&size, block, sizeof size);
  if (block[sizeof size] != (unsigned char)size || block[size - 1] != (unsigned char)size) broken = 1;
  free(block);
}

static void* work(void* argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < kRounds; ++i)
    end(__atomic_exchange_n(&shared[(seed >> 4) % kSlots], make(&seed), __ATOMIC_ACQ_REL));
  return NULL;
}

static int grows(void) {
  char* text = NULL;
  for (size_t size = 1; size < ((size_t)32 << 20); size = size * 3 / 2 + 1) {
    text = realloc(text, size);
    if (text == NULL) return 0;
    text[size - 1] = 'x';
  }
  const int whole = text[0] == 'x';
  free(text);
  return whole;
}

static int child_works(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 1000; ++i) free(malloc((size_t)i * 100));
    _exit(0);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
  if (hummock_is_active == NULL || !hummock_is_active()) return fputs("not on Hummock\n", stderr), 2;
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)(i + 1));
  if (!child_works()) return fputs("the child does not work\n", stderr), 3;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kSlots; ++i) end(shared[i]);
  if (broken || !grows()) return fputs("a block does not hold what was written\n", stderr), 4;
  return 0;
}
