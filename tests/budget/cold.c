/* One cold malloc(64) and one cold free(64), for scripts/counts.py: the first of their class in a thread that
 * has a heap. */
#include <stdlib.h>

void* volatile kept;

__attribute__((noinline)) void cold_malloc(void) {
  kept = malloc(64);
}
__attribute__((noinline)) void cold_free(void) {
  free(kept);
}

int main(void) {
  kept = malloc(1000);
  free(kept);
  cold_malloc();
  cold_free();
  return 0;
}
