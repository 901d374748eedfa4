// Checked mode's quarantine, as tests set and empty it.
#ifndef HUMMOCK_TESTS_QUARANTINE_H
#define HUMMOCK_TESTS_QUARANTINE_H

#include <doctest/doctest.h>
#include <hummock/hummock.h>

namespace support {

// Gives the quarantine this bound for a while.
class Quarantine {
 public:
  explicit Quarantine(const char* limit) {
    REQUIRE(hummock_option_get("quarantine", before_, sizeof(before_)) == 0);
    REQUIRE(hummock_option_set("quarantine", limit) == 0);
  }
  ~Quarantine() { hummock_option_set("quarantine", before_); }
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

 private:
  char before_[64];
};

// Lets go of all that rests in quarantine; but for eight blocks too large for it.
inline void empty_quarantine() {
  const Quarantine none("0");
  hummock_free(hummock_malloc(1));
}

}  // namespace support

#endif  // HUMMOCK_TESTS_QUARANTINE_H
