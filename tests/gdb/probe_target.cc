// Does each thing once that a probe tells of, in a known order.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

extern "C" __attribute__((noinline)) void begin() {
  asm volatile("");
}

namespace {

void* kept(size_t size) {
  void* block = malloc(size);
  if (block == nullptr) abort();
  memset(block, 1, size);
  return block;
}

}  // namespace

int main() {
  free(kept(1));
  begin();
  void* small = kept(700);                // refill
  void* large = kept(size_t{100} << 20);  // map
  void* sampled[2000];                    // some of them: alloc
  for (void*& block : sampled) block = kept(3000);
  for (void* block : sampled) free(block);  // free
  free(large);
  malloc_trim(0);  // purge, unmap
  free(small);
  return 0;
}
