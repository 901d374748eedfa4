// A loop whose executed instructions are counted: loop call|inline|none BATCH SIZE ROUNDS
#include <hummock/proxy_inline.h>
#include <stdlib.h>
#include <string.h>

namespace {

constexpr size_t kMostBatch = 1000;

struct Call {
  static void* take(hummock_proxy_t* proxy, size_t size) { return hummock_proxy_malloc(proxy, size, 16); }
  static void give(hummock_proxy_t* proxy, void* p) { hummock_proxy_free(proxy, p); }
};
struct Inline {
  static void* take(hummock_proxy_t* proxy, size_t size) {
    return hummock_proxy_malloc_inline(proxy, size, 16);
  }
  static void give(hummock_proxy_t* proxy, void* p) { hummock_proxy_free_inline(proxy, p); }
};
struct None {
  static void* take(hummock_proxy_t* proxy, size_t) {
    void* p = proxy;
    asm volatile("" : "+r"(p));
    return p;
  }
  static void give(hummock_proxy_t*, void* p) { asm volatile("" : : "r"(p)); }
};

template <class Way>
void run(hummock_proxy_t* proxy, size_t batch, size_t size, size_t rounds) {
  static void* blocks[kMostBatch];
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < batch; ++i) {
      blocks[i] = Way::take(proxy, size);
      if (blocks[i] == nullptr) abort();
    }
    for (size_t i = 0; i < batch; ++i) Way::give(proxy, blocks[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t batch = strtoul(argv[2], nullptr, 0), size = strtoul(argv[3], nullptr, 0);
  const size_t rounds = strtoul(argv[4], nullptr, 0);
  if (batch == 0 || batch > kMostBatch) return 2;
  hummock_proxy_options_t options = {};
  options.size = sizeof options;
  options.bucket_count = 62;
  options.bucket_bytes = 4 << 20;
  hummock_proxy_t* proxy = hummock_proxy_create(&options);
  if (proxy == nullptr) return 1;
  uint32_t most[62];
  for (uint32_t& each : most) each = 2 * kMostBatch;
  if (hummock_proxy_thread_cache_create(proxy, HUMMOCK_PROXY_HOT, most, 62) != 0) return 1;
  run<Call>(proxy, batch, size, 4);
  if (strcmp(argv[1], "call") == 0) run<Call>(proxy, batch, size, rounds);
  if (strcmp(argv[1], "inline") == 0) run<Inline>(proxy, batch, size, rounds);
  if (strcmp(argv[1], "none") == 0) run<None>(proxy, batch, size, rounds);
  hummock_proxy_destroy(proxy);
  return 0;
}
