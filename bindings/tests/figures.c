// Holds a block for a tag, and prints the figures: as numbers, then as JSON. C and C++.
#include <hummock/hummock.h>
#include <hummock/observe.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static hummock_stats_t stats;
  static char json[1 << 20];
  hummock_tag(4711);
  char* block = (char*)hummock_malloc(10000000);
  hummock_tag(0);
  stats.size = sizeof stats;
  if (block == NULL || hummock_stats(&stats) != 0 || hummock_stats_json(json, sizeof json) >= sizeof json)
    return EXIT_FAILURE;
  printf("%zu %zu %zu %zu\n%s\n", stats.large_blocks, stats.large_bytes, stats.mapped, stats.purged, json);
  hummock_free(block);
  return EXIT_SUCCESS;
}
