// Many small blocks in several threads: smmalloc's own benchmark, on a proxy or on the process's malloc.
//
//   proxy_threads proxy|uncached|malloc sweeps|ring THREADS ROUNDS
//
// sweeps: 100,000 slots a thread are filled from 1,048,576 random sizes of 16…79 bytes that all threads read
//         from the start; then ROUNDS times over all slots: free the slot's block, allocate the next size;
//         then all are freed.
// ring:   ROUNDS blocks of 16…255 bytes go through a ring of 10,000: 33 bytes of each are written (or all,
//         when it is smaller), then the oldest is freed.
// Prints the mean operations a second of a thread, by its processor time.
#include <pthread.h>
#include <smmalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr size_t kSizes = 1 << 20;
constexpr size_t kSlots = 100000;
constexpr size_t kRing = 10000;
constexpr size_t kAlignment = 16;
constexpr size_t kWritten = 33;

struct Process {
  void* allocate(size_t size) const { return malloc(size); }
  void release(void* block) const { free(block); }
  void enter() const {}
  void leave() const {}
};

struct Proxy {
  sm_allocator allocator;
  bool cached;
  void* allocate(size_t size) const { return _sm_malloc(allocator, size, kAlignment); }
  void release(void* block) const { _sm_free(allocator, block); }
  void enter() const {
    if (!cached) return;
    _sm_allocator_thread_cache_create(
        allocator, sm::CACHE_HOT,
        {16384, 131072, 131072, 131072, 131072, 16384, 16384, 16384, 16384, 16384, 16384, 16384});
  }
  void leave() const {
    if (cached) _sm_allocator_thread_cache_destroy(allocator);
  }
};

std::vector<uint16_t> random_sizes(size_t least, size_t most) {
  std::vector<uint16_t> sizes(kSizes);
  uint64_t state = 88172645463325252u;
  for (uint16_t& size : sizes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    size = static_cast<uint16_t>(least + (state >> 11) % (most - least + 1));
  }
  return sizes;
}

template <class Memory>
size_t sweeps(const Memory& memory, const std::vector<uint16_t>& sizes, size_t rounds) {
  const auto slots = std::make_unique<void*[]>(kSlots);
  size_t next = 0;
  for (size_t i = 0; i < kSlots; ++i) slots[i] = memory.allocate(sizes[next++ % kSizes]);
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < kSlots; ++i) {
      memory.release(slots[i]);
      slots[i] = memory.allocate(sizes[next++ % kSizes]);
      if (slots[i] == nullptr) abort();
    }
  }
  for (size_t i = 0; i < kSlots; ++i) memory.release(slots[i]);
  return 2 * (rounds + 1) * kSlots;
}

template <class Memory>
size_t ring(const Memory& memory, const std::vector<uint16_t>& sizes, size_t rounds) {
  const auto slots = std::make_unique<void*[]>(kRing);
  for (size_t i = 0; i < rounds; ++i) {
    const size_t size = sizes[i % kSizes];
    void* block = memory.allocate(size);
    if (block == nullptr) abort();
    memset(block, static_cast<int>(i), size < kWritten ? size : kWritten);
    void*& oldest = slots[i % kRing];
    if (oldest != nullptr) memory.release(oldest);
    oldest = block;
  }
  for (size_t i = 0; i < kRing; ++i) {
    if (slots[i] != nullptr) memory.release(slots[i]);
  }
  return 2 * rounds;
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Memory>
void measure(const Memory& memory, bool in_ring, unsigned threads, size_t rounds) {
  const auto sizes = in_ring ? random_sizes(16, 255) : random_sizes(16, 79);
  std::vector<double> rates(threads);
  pthread_barrier_t start;
  pthread_barrier_init(&start, nullptr, threads);
  std::vector<std::thread> crew;
  for (unsigned t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      memory.enter();
      pthread_barrier_wait(&start);
      const double begin = processor_seconds();
      const size_t done = in_ring ? ring(memory, sizes, rounds) : sweeps(memory, sizes, rounds);
      rates[t] = static_cast<double>(done) / (processor_seconds() - begin);
      memory.leave();
    });
  }
  for (std::thread& thread : crew) thread.join();
  pthread_barrier_destroy(&start);
  double sum = 0;
  for (double rate : rates) sum += rate;
  printf("%.0f\n", sum / threads);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: proxy_threads proxy|uncached|malloc sweeps|ring THREADS ROUNDS\n");
    return 2;
  }
  const bool in_ring = strcmp(argv[2], "ring") == 0;
  const unsigned threads = static_cast<unsigned>(strtoul(argv[3], nullptr, 0));
  const size_t rounds = strtoul(argv[4], nullptr, 0);
  if (threads == 0 || rounds == 0) return 2;
  if (strcmp(argv[1], "malloc") == 0) {
    measure(Process(), in_ring, threads, rounds);
    return 0;
  }
  // Enough for every thread's full cache.
  sm_allocator allocator = _sm_allocator_create(16, size_t{16} * (threads + 3) << 20);
  if (allocator == nullptr) return 1;
  measure(Proxy{allocator, strcmp(argv[1], "uncached") != 0}, in_ring, threads, rounds);
  _sm_allocator_destroy(allocator);
  return 0;
}
