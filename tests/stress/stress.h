// What the stress programs share. Each is built twice: over the prefixed library (also with sanitizers)
// and, with STRESS_PLAIN, over plain malloc, to be run with libhummock.so preloaded.
#ifndef HUMMOCK_TESTS_STRESS_H
#define HUMMOCK_TESTS_STRESS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "support/support.h"

#ifdef STRESS_PLAIN
#include <malloc.h>
namespace memory {
inline void* get(size_t size) {
  return malloc(size);
}
inline void* get_zero(size_t size) {
  return calloc(1, size);
}
inline void* get_aligned(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
inline void* resize(void* block, size_t size) {
  return realloc(block, size);
}
inline void give(void* block) {
  free(block);
}
inline void trim() {
  malloc_trim(0);
}
}  // namespace memory
#else
#include <hummock/hummock.h>
namespace memory {
inline void* get(size_t size) {
  return hummock_malloc(size);
}
inline void* get_zero(size_t size) {
  return hummock_calloc(1, size);
}
inline void* get_aligned(size_t alignment, size_t size) {
  return hummock_memalign(alignment, size);
}
inline void* resize(void* block, size_t size) {
  return hummock_realloc(block, size);
}
inline void give(void* block) {
  hummock_free(block);
}
inline void trim() {
  hummock_trim(0);
}
}  // namespace memory
#endif

namespace stress {

inline void require(bool held, const char* what) {
  if (held) return;
  fprintf(stderr, "FAILED: %s (TEST_SEED=%llu)\n", what,
          static_cast<unsigned long long>(support::run_seed()));
  abort();
}

// A block that knows its own size and contents, so that whoever gets it can check it.
struct Head {
  size_t size;
  uint64_t tag;
};

inline void* fresh(support::Random& random, size_t most) {
  const size_t size = sizeof(Head) + random.size_up_to(most);
  void* block = nullptr;
  switch (random.below(8)) {
    case 0:
      block = memory::get_zero(size);
      if (block != nullptr && size <= 65536) require(support::all_zero(block, 0, size), "calloc is zero");
      break;
    case 1: {
      const size_t alignment = size_t{16} << random.below(9);
      block = memory::get_aligned(alignment, size);
      require(support::is_aligned(block, alignment), "alignment");
      break;
    }
    case 2:
      block = memory::resize(memory::get(size / 2 + 1), size);
      break;
    default:
      block = memory::get(size);
  }
  require(block != nullptr, "memory");
  const Head head = {size - sizeof(Head), random.next()};
  memcpy(block, &head, sizeof(head));
  support::fill(static_cast<char*>(block) + sizeof(Head), head.tag, head.size);
  return block;
}

inline void check(const void* block) {
  Head head;
  memcpy(&head, block, sizeof(head));
  require(support::intact(static_cast<const char*>(block) + sizeof(Head), head.tag, head.size),
          "contents kept until the end of a block's life");
}

inline void finish(void* block) {
  check(block);
  memory::give(block);
}

// Runs `work(index)` in `count` threads and waits for them.
inline void run_threads(size_t count, const std::function<void(size_t)>& work) {
  std::vector<std::thread> crew;
  for (size_t i = 0; i < count; ++i) crew.emplace_back(work, i);
  for (std::thread& thread : crew) thread.join();
}

#if HUMMOCK_TEST_EMULATED
// The emulator is the process, and qemu 7.2 keeps 320 KiB of its own for each thread that has ended. So
// what counts is the program's own mappings, which the emulator's /proc/self/maps lists alone.
inline size_t resident_bytes() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  FILE* file = fopen("/proc/self/maps", "r");
  if (file == nullptr) return 0;
  size_t pages = 0, start = 0, end = 0;
  while (fscanf(file, "%zx-%zx%*[^\n]", &start, &end) == 2) {
    std::vector<unsigned char> in_memory((end - start) / page);
    if (mincore(reinterpret_cast<void*>(start), end - start, in_memory.data()) != 0) continue;
    for (const unsigned char each : in_memory) pages += each & 1u;
  }
  fclose(file);
  return pages * page;
}
#else
inline size_t resident_bytes() {
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  size_t total = 0, resident = 0;
  const int fields = fscanf(file, "%zu %zu", &total, &resident);
  fclose(file);
  return fields == 2 ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}
#endif

}  // namespace stress

#endif  // HUMMOCK_TESTS_STRESS_H
