// The library's statistics, in a form that tests can subtract.
#ifndef HUMMOCK_TESTS_FIGURES_H
#define HUMMOCK_TESTS_FIGURES_H

#include <doctest/doctest.h>
#include <hummock/hummock.h>

#include <string>
#include <thread>

namespace support {

inline hummock_stats_t figures() {
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  REQUIRE(hummock_stats(&stats) == 0);
  return stats;
}

inline hummock_heap_stats_t figures(hummock_heap_t* heap) {
  hummock_heap_stats_t stats = {};
  stats.size = sizeof(stats);
  REQUIRE(hummock_heap_stats(heap, &stats) == 0);
  return stats;
}

inline bool option_is_on(const char* name) {
  char value[64] = "";
  return hummock_option_get(name, value, sizeof(value)) == 0 && std::string(value) == "on";
}

// In checked mode a block's usable size is the size asked, and freed blocks rest in quarantine.
inline bool checked() {
  return option_is_on("checked");
}

// A thread's caches may hold blocks of its own for a while; what ran in a thread that has ended has
// been given back. Runs `work` in a thread of its own.
template <class Work>
void in_thread(Work work) {
  std::thread(work).join();
}

}  // namespace support

#endif  // HUMMOCK_TESTS_FIGURES_H
