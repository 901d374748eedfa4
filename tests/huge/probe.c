// A program with a heap, that says on which pages it stands. Run with the library preloaded.
//
//   heap MIB [stay|threads|free|part|trim|fork]
//                                    small blocks; then works for some seconds, starts 300 threads that have
//                                    little, frees all, frees three of four, frees and trims, or forks a
//                                    child that writes everywhere
//   disable COMMAND...               PR_SET_THP_DISABLE, then the command
//   random MIB [small|huge]          nanoseconds (of CPU time, the best of 24 rounds) of a random read of its
//                                    small blocks; or of as many in one mapping of such pages, without any
//                                    malloc
#include <dlfcn.h>
#include <hummock/hummock.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kSize = 1000 };

static char** blocks;
static size_t count;

static void fill(size_t mib) {
  count = mib * 1048576 / 1024;
  blocks = malloc(count * sizeof *blocks);
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = malloc(kSize);
    if (blocks[i] == NULL) {
      printf("null=%zu\n", i);
      exit(3);
    }
    memset(blocks[i], (int)(i % 251), kSize);
  }
}

static int intact(size_t step) {
  for (size_t i = 0; i < count; i += step) {
    for (size_t at = 0; at < kSize; at += 111) {
      if (blocks[i][at] != (char)(i % 251)) return 0;
    }
  }
  return 1;
}

// The figures of the mapping that holds `inside`, as smaps has them, in KiB.
static void print_mapping(const char* inside) {
  FILE* file = fopen("/proc/self/smaps", "r");
  char line[512];
  int here = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    unsigned long from, to, number;
    char name[64];
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
      here = (uintptr_t)inside >= from && (uintptr_t)inside < to;
    } else if (here && sscanf(line, "%63[^:]: %lu kB", name, &number) == 2) {
      printf("here.%s=%lu\n", name, number);
    } else if (here && strncmp(line, "VmFlags:", 8) == 0) {
      printf("here.flags=%s", line + 9);
    }
  }
  if (file != NULL) fclose(file);
}

static unsigned long huge_kib(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[512];
  unsigned long kib = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "AnonHugePages: %lu kB", &kib);
  if (file != NULL) fclose(file);
  return kib;
}

static void print_process(const char* when) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[512];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    unsigned long number;
    char name[64];
    if (sscanf(line, "%63[^:]: %lu kB", name, &number) == 2) printf("%s.%s=%lu\n", when, name, number);
  }
  if (file != NULL) fclose(file);
  int (*stats)(hummock_stats_t*) = (int (*)(hummock_stats_t*))dlsym(RTLD_DEFAULT, "hummock_stats");
  hummock_stats_t all = {.size = sizeof all};
  if (stats == NULL || stats(&all) != 0) return;
  printf("%s.pinned=%zu\n%s.advised=%zu\n%s.refusals=%zu\n", when, all.huge_pinned >> 10, when,
         all.huge_advised >> 10, when, all.huge_refusals);
  printf("%s.live=%zu\n%s.dirty=%zu\n", when, all.live >> 10, when, all.dirty >> 10);
}

static void release(size_t keep_one_of) {
  for (size_t i = 0; i < count; ++i) {
    if (keep_one_of != 0 && i % keep_one_of == 0) continue;
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

// Time passes while the program does a little: what is due goes back.
static void idle(void) {
  for (int i = 0; i < 40; ++i) {
    usleep(50000);
    for (int k = 0; k < 300; ++k) free(malloc(20000));
  }
}

// Blocks of sizes without a cache of their own come and go while the heap stays: for three seconds, and where
// the machine is busy until there are four huge pages, but not for ever.
static void work(void) {
  enum { kMost = 40, kUsual = 300, kLongest = 6000 };
  char* some[kMost];
  for (int i = 0; i < kUsual || (i < kLongest && huge_kib() < 8192); ++i) {
    for (int k = 0; k < kMost; ++k) some[k] = malloc(70000 + (size_t)k * 5000);
    for (int k = 0; k < kMost; ++k) free(some[k]);
    usleep(10000);
  }
}

enum { kThreads = 300 };
static int waiting;  // threads, atomic

// Has a byte of one block of each size class, and waits for ever.
static void* hold(void* unused) {
  for (size_t size = 16; size <= 65536; size += size < 256 ? 16 : size / 8) *(volatile char*)malloc(size) = 1;
  __atomic_fetch_add(&waiting, 1, __ATOMIC_RELEASE);
  for (;;) pause();
  return unused;
}

static void start_threads(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_t thread;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&thread, &small, hold, NULL) != 0) exit(6);
  }
  while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) < kThreads) usleep(1000);
}

static int heap(size_t mib, const char* then) {
  fill(mib);
  print_mapping(blocks[count / 2]);
  print_process("full");
  if (strcmp(then, "stay") == 0) work();
  if (strcmp(then, "threads") == 0) start_threads();
  if (strcmp(then, "free") == 0) release(0), idle();
  if (strcmp(then, "part") == 0) release(4), idle();
  if (strcmp(then, "trim") == 0) {
    int (*trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "hummock_trim");
    release(0);
    printf("trimmed=%d\n", trim(0));
    for (size_t i = 0; i < count; ++i) {
      blocks[i] = malloc(kSize);
      memset(blocks[i], (int)(i % 251), kSize);
    }
    printf("again=%d\n", intact(1));
    release(0);
    trim(0);
  }
  if (strcmp(then, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      if (!intact(1)) _exit(4);
      for (size_t i = 0; i < count; ++i) memset(blocks[i], 7, kSize);
      release(0);
      fill(mib / 2);
      _exit(intact(1) ? 0 : 5);
    }
    for (size_t i = 0; i < count; ++i) blocks[i][0] = blocks[i][1];
    int status = 0;
    waitpid(child, &status, 0);
    printf("child=%d\nkept=%d\n", status, intact(1));
  }
  print_process("after");
  return 0;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Each read's place depends on one before, so that at most `chains` of them are under way at a time.
static double read_chains(char** at, int chains, int reads) {
  const double start = seconds();
  for (int i = 0; i < reads; i += chains) {
    for (int k = 0; k < chains; ++k) at[k] = *(void**)at[k];
  }
  return (seconds() - start) * 1e9 / reads;
}

enum { kBlock = 64, kReads = 1 << 19, kChains = 8, kHugePage = 2 << 20 };

// What `count` blocks of one malloc each are without it: a row of them on pages of one kind.
static char* row_of_blocks(size_t count, int advice) {
  char* row =
      mmap(NULL, count * kBlock + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (row == MAP_FAILED) return NULL;
  row += -(uintptr_t)row % kHugePage;
  madvise(row, count * kBlock, advice);
  return row;
}

static char** places_of_blocks(size_t count, const char* pages) {
  char** place =
      mmap(NULL, count * sizeof *place, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return NULL;
  char* row = NULL;
  if (*pages != 0) {
    row = row_of_blocks(count, strcmp(pages, "huge") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (row == NULL) return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    place[i] = row != NULL ? row + i * kBlock : malloc(kBlock);
    if (place[i] == NULL) return NULL;
    memset(place[i], 0, kBlock);
  }
  return place;
}

static int random_reads(size_t mib, const char* pages) {
  const size_t n = mib * 1048576 / kBlock;
  char** place = places_of_blocks(n, pages);
  if (place == NULL) return 3;
  // Sattolo's shuffle makes one ring of all of them.
  uint64_t state = 42;
  for (size_t i = n - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t other = (state >> 20) % i;
    char* swap = place[i];
    place[i] = place[other];
    place[other] = swap;
  }
  for (size_t i = 0; i < n; ++i) *(void**)place[i] = place[(i + 1) % n];
  char* at[kChains];
  for (size_t k = 0; k < kChains; ++k) at[k] = place[n / kChains * k];
  munmap(place, n * sizeof *place);
  double single = 1e9, several = 1e9;
  for (int round = 0; round < 24; ++round) {
    const double one = read_chains(at, 1, kReads), eight = read_chains(at, kChains, kReads);
    if (one < single) single = one;
    if (eight < several) several = eight;
  }
  printf("ns=%.1f\nns_of_several=%.1f\nend=%d\n", single, several, at[0] != NULL);
  print_process("full");
  return 0;
}

int main(int argc, char** argv) {
  if (argc >= 3 && strcmp(argv[1], "disable") == 0) {
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 77;
    execv(argv[2], argv + 2);
    return 2;
  }
  if (argc >= 3 && strcmp(argv[1], "heap") == 0)
    return heap(strtoul(argv[2], NULL, 10), argc > 3 ? argv[3] : "");
  if (argc >= 3 && strcmp(argv[1], "random") == 0)
    return random_reads(strtoul(argv[2], NULL, 10), argc > 3 ? argv[3] : "");
  fprintf(stderr,
          "probe: heap MIB [stay|threads|free|part|trim|fork] | disable COMMAND | random MIB [small|huge]\n");
  return 2;
}
