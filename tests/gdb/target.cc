// Known blocks, and a place to stop with them.
#include <stdlib.h>
#include <string.h>

char* blocks[1000];
char* freed;
char* large;
char* mapped;

extern "C" __attribute__((noinline)) void stop_here() {
  asm volatile("" ::: "memory");
}

int main() {
  for (char*& block : blocks) {
    block = static_cast<char*>(malloc(3000));
    memset(block, 'b', 3000);
  }
  freed = static_cast<char*>(malloc(700));
  free(freed);
  large = static_cast<char*>(malloc(1 << 20));
  mapped = static_cast<char*>(malloc(100 << 20));
  stop_here();
  return 0;
}
