/* Loops whose executed instructions are counted.
 *
 *   loop count|trap real|operators|empty STATE BATCH SIZE ROUNDS
 *
 * Brings the heap to STATE (empty, fragmented, small), then ROUNDS times allocates BATCH blocks of SIZE
 * bytes and frees them in the same order. "trap": a system call in the loop ends the program with 3.
 * "operators" calls operator new and the sized operator delete, "empty" functions that do nothing. Prints
 * the file that malloc comes from. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "draw.h"

void* empty_malloc(size_t size);
void empty_free(void* block);

static void* (*volatile chosen_malloc)(size_t);
static void (*volatile chosen_free)(void*, size_t); /* free itself does not look at the size */

enum { kMostBatch = 100000, kLive = 400, kSmall = 300000 };
static void* batch[kMostBatch];
static void* live[kLive];
static void* small[kSmall];
/* Random live blocks of 64 KiB to 4 MiB, after many have come and gone. */
static void fragment(void) {
  for (int i = 0; i < 4 * kLive; ++i) {
    size_t at = draw(kLive);
    free(live[at]);
    live[at] = malloc(65536u + draw((4u << 20) - 65536u));
    if (live[at] == NULL) abort();
  }
  for (int i = 0; i < kLive; i += 2) {
    free(live[i]);
    live[i] = NULL;
  }
}

static void fill_with_small(void) {
  for (int i = 0; i < kSmall; ++i) small[i] = malloc(1 + draw(300));
  for (int i = 0; i < kSmall; i += 3) free(small[i]);
}

static void run(size_t count, size_t size, size_t rounds) {
  void* (*take)(size_t) = chosen_malloc;
  void (*give)(void*, size_t) = chosen_free;
  if (count == 1) {
    for (size_t round = 0; round < rounds; ++round) give(take(size), size);
    return;
  }
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < count; ++i) batch[i] = take(size);
    for (size_t i = 0; i < count; ++i) give(batch[i], size);
  }
}

static void on_system_call(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  char text[64];
  int length = snprintf(text, sizeof text, "system call %d in the loop\n", info->si_syscall);
  if (write(2, text, (size_t)length) < 0) _exit(4);
  _exit(3);
}

/* From now on only these system calls pass; any other is a trap. */
static void trap_system_calls(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(77);
  }
}

typedef void sized_free(void*, size_t);

static void choose(const char* kind) {
  chosen_malloc = malloc;
  chosen_free = (sized_free*)(void*)free;
  if (strcmp(kind, "empty") == 0) {
    chosen_malloc = empty_malloc;
    chosen_free = (sized_free*)(void*)empty_free;
  } else if (strcmp(kind, "operators") == 0) {
    *(void**)&chosen_malloc = dlsym(RTLD_DEFAULT, "_Znwm");
    *(void**)&chosen_free = dlsym(RTLD_DEFAULT, "_ZdlPvm");
    if (chosen_malloc == NULL || chosen_free == NULL) {
      fprintf(stderr, "no C++ operators\n");
      exit(2);
    }
  }
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const size_t count = strtoul(argv[4], NULL, 0), size = strtoul(argv[5], NULL, 0);
  const size_t rounds = strtoul(argv[6], NULL, 0);
  if (count == 0 || count > kMostBatch) return 2;
  choose(argv[2]);

  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0) printf("malloc from %s\n", info.dli_fname);
  fflush(stdout);
  if (strcmp(argv[3], "fragmented") == 0) fragment();
  if (strcmp(argv[3], "small") == 0) fill_with_small();

  run(count, size, 1000 / count + 10);
  if (strcmp(argv[1], "trap") == 0) trap_system_calls();
  run(count, size, rounds);
  _exit(0);
}
