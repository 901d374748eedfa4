/* What the programs of this folder share: figures of memory and time, and how they are printed. */
#ifndef HUMMOCK_TESTS_BUDGET_FIGURES_H
#define HUMMOCK_TESTS_BUDGET_FIGURES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const size_t kMiB = (size_t)1 << 20;

/* A field of a file of /proc in kB, as bytes. No allocation, no stdio. */
static size_t field(const char* path, const char* name) {
  static char text[8192];
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  static char buffer[8192];
  setvbuf(file, buffer, _IOFBF, sizeof buffer);
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char* at = strstr(text, name);
  return at == NULL ? 0 : strtoul(at + strlen(name), NULL, 10) * 1024;
}

/* smaps_rollup is exact; the kernel's running count is off by some pages a processor. */
static size_t resident(void) {
  const size_t exact = field("/proc/self/smaps_rollup", "Rss:");
  return exact != 0 ? exact : field("/proc/self/status", "VmRSS:");
}
__attribute__((unused)) static size_t peak(void) {
  return field("/proc/self/status", "VmHWM:");
}

static void say(const char* key, size_t value) {
  printf("%s=%zu\n", key, value);
  fflush(stdout);
}

__attribute__((unused)) static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((unused)) static void pause_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* Memory for the program's own books, not from malloc, present from the start. */
__attribute__((unused)) static void* books(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static char* get(size_t size) {
  char* block = malloc(size);
  if (block == NULL) abort();
  memset(block, 1, size);
  return block;
}

#endif
