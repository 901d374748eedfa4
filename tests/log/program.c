// A program with something to log.
//
//   ends               allocates, frees, ends
//   killed             the same, then SIGKILL to itself from the middle of allocating, with four threads
//   forks              a child allocates, too
//   closes             closes every descriptor it did not open, then allocates
//   moves              changes its folder, then allocates
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(void) {
  enum { kCount = 60000 };
  static _Thread_local void* blocks[kCount];
  for (int i = 0; i < kCount; ++i) blocks[i] = memset(malloc(1000), 1, 1000);
  for (int i = 0; i < kCount; ++i) free(blocks[i]);
  char* large = malloc(20000000);
  large = realloc(large, 40000000);
  large[39999999] = 1;
  free(large);
}

static void* for_ever(void* unused) {
  (void)unused;
  for (;;) work();
  return NULL;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "forks") == 0) {
    work();
    const pid_t child = fork();
    if (child == 0) {
      work();
      exit(0);
    }
    printf("child=%d\n", (int)child);
    int status;
    waitpid(child, &status, 0);
    return status != 0;
  }
  if (strcmp(what, "closes") == 0) {
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  }
  if (strcmp(what, "moves") == 0 && chdir("/") != 0) return 1;
  if (strcmp(what, "killed") == 0) {
    pthread_t crew[4];
    for (int i = 0; i < 4; ++i) pthread_create(&crew[i], NULL, for_ever, NULL);
    for (int i = 0; i < 4; ++i) work();
    kill(getpid(), SIGKILL);
  }
  work();
  return 0;
}
