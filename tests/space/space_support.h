// What the tests of spaces share.
#ifndef HUMMOCK_TESTS_SPACE_SUPPORT_H
#define HUMMOCK_TESTS_SPACE_SUPPORT_H

#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>

#include "support/support.h"

namespace support {

inline hummock_space_options_t space_of(size_t bytes, uint32_t threads = HUMMOCK_SPACE_OWNER,
                                        uint32_t policy = HUMMOCK_SPACE_DENSE) {
  hummock_space_options_t options = {};
  options.size = sizeof(options);
  options.initial = bytes;
  options.threads = threads;
  options.policy = policy;
  return options;
}

// A space that ends with the test.
class Space {
 public:
  explicit Space(const hummock_space_options_t& options)
      : handle_(hummock_space_create(&options, &achieved)) {
    REQUIRE(handle_ != nullptr);
  }
  ~Space() { hummock_space_destroy(handle_); }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  operator hummock_space_t*() const { return handle_; }

  uint32_t achieved = 0;

 private:
  hummock_space_t* handle_;
};

inline hummock_space_stats_t figures(hummock_space_t* space) {
  hummock_space_stats_t stats = {};
  stats.size = sizeof(stats);
  REQUIRE(hummock_space_stats(space, &stats) == 0);
  return stats;
}

// The walk checks headers, links, bits and figures against one another.
inline bool is_sound(hummock_space_t* space) {
  return hummock_space_walk(
             space, [](void*, void*, size_t, int) { return 1; }, nullptr) == 0;
}

}  // namespace support

#endif  // HUMMOCK_TESTS_SPACE_SUPPORT_H
