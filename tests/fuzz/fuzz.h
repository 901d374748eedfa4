// What the fuzz targets share. A target is one function that takes bytes and ends the process when a promise
// is broken. It is built twice: with libFuzzer, which looks for bytes that reach new code (preset "fuzz"),
// and with standalone.cc, which needs no other compiler (every preset that has tests).
#ifndef HUMMOCK_TESTS_FUZZ_H
#define HUMMOCK_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fuzz {

inline void expect(bool held, const char* promise) {
  if (held) return;
  fprintf(stderr, "fuzz: broken: %s\n", promise);
  abort();
}

// The bytes of one run, taken piece by piece. When they have run out every piece is 0.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }

  uint64_t bytes(size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count && !empty(); ++i) value |= static_cast<uint64_t>(*at_++) << (8 * i);
    return value;
  }
  uint8_t byte() { return static_cast<uint8_t>(bytes(1)); }
  bool flag() { return (byte() & 1) != 0; }

  size_t below(size_t limit) {
    const size_t width = limit <= 256 ? 1 : limit <= 65536 ? 2 : 4;
    return static_cast<size_t>(bytes(width) % limit);
  }
  size_t between(size_t least, size_t most) { return least + below(most - least + 1); }

  // Every doubling up to `most` is as likely as any other; near the powers of two, where classes end, more
  // often.
  size_t size_up_to(size_t most) {
    const size_t bits = below(static_cast<size_t>(64 - __builtin_clzll(most | 1)) + 1);
    if (bits == 0) return 0;
    const size_t power = size_t{1} << (bits - 1);
    const uint8_t how = byte();
    const size_t size = how < 32    ? power
                        : how < 64  ? power - 1
                        : how < 96  ? power + 1
                        : how < 128 ? power + how % 32
                                    : power + below(power);
    return std::min(most, size);
  }

  std::string rest() {
    std::string text(reinterpret_cast<const char*>(at_), static_cast<size_t>(end_ - at_));
    at_ = end_;
    return text;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

// Another thread, which does one thing at a time while its caller waits: what a run does depends on its bytes
// alone. Destroyed, the thread ends; the next one is new.
class OtherThread {
 public:
  OtherThread() : thread_([this] { loop(); }) {}
  ~OtherThread() {
    run({});
    thread_.join();
  }

  void run(std::function<void()> act) {
    std::unique_lock lock(mutex_);
    act_ = std::move(act);
    given_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !given_; });
  }

 private:
  void loop() {
    for (bool more = true; more;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return given_; });
      more = static_cast<bool>(act_);
      if (more) act_();
      given_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> act_;
  bool given_ = false;
  std::thread thread_;  // last: it starts with the others made
};

}  // namespace fuzz

#endif  // HUMMOCK_TESTS_FUZZ_H
