// First-class heaps end in some threads while others free so much that, in checked mode, the quarantine is
// always too full: whoever frees lets go of blocks of all heaps, those that end among them.
#include <hummock/hummock.h>

#include "stress/stress.h"

namespace {

size_t any_size(support::Random& random) {
  return random.one_in(8) ? random.between(size_t{64} << 10, size_t{1} << 20) : random.size_up_to(4096);
}

void live_briefly(support::Random& random) {
  hummock_heap_t* heap = hummock_heap_create();
  stress::require(heap != nullptr, "a heap");
  for (int i = 0; i < 20; ++i) {
    void* block = hummock_heap_malloc(heap, any_size(random));
    stress::require(block != nullptr, "memory");
    if (!random.one_in(4)) hummock_heap_free(heap, block);
  }
  hummock_heap_destroy(heap);
}

void use(size_t self) {
  support::Random random(support::run_seed() + self);
  for (size_t i = support::scaled(4000, 200); i > 0; --i) {
    live_briefly(random);
    for (int k = 0; k < 10; ++k) memory::give(memory::get(any_size(random)));
  }
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::run_seed();  // before there are threads
  stress::run_threads(4, use);
}
