#include "sampler.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "clock.h"

namespace {

constexpr unsigned kPause = 1000;  // microseconds between looks

}  // namespace

size_t private_bytes() {
  static const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  char text[4096];
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* line = strstr(text, "RssAnon:");
  return line == nullptr ? 0 : strtoull(line + 8, nullptr, 10) * 1024;
}

Sampler::Sampler() : begun_(nanoseconds()), start_(private_bytes()), peak_(start_) {
  const int error = pthread_create(
      &thread_, nullptr,
      [](void* self) -> void* {
        static_cast<Sampler*>(self)->run();
        return nullptr;
      },
      this);
  if (error != 0) fail(3, "no thread to look at the memory");
}

// When the points are full, every second one goes.
void Sampler::look() {
  const size_t now = private_bytes();
  if (now > peak_) peak_ = now;
  const double time = static_cast<double>(nanoseconds() - begun_) / 1e9;
  if (time < next_) return;
  if (count_ == kPoints) {
    for (size_t i = 0; i < kPoints / 2; ++i) points_[i] = points_[2 * i];
    count_ = kPoints / 2;
    interval_ *= 2;
  }
  points_[count_++] = {time, now};
  next_ = time + interval_;
}

void Sampler::run() {
  while (!stopped_.load()) {
    look();
    usleep(kPause);
  }
  cpu_seconds_ = static_cast<double>(nanoseconds(CLOCK_THREAD_CPUTIME_ID)) / 1e9;
}

void Sampler::stop() {
  stopped_.store(true);
  pthread_join(thread_, nullptr);
  look();
}

void Sampler::write(Json& json) const {
  json.key("series").open('[');
  for (size_t i = 0; i < count_; ++i) {
    json.open('{');
    json.key("t").number(points_[i].time);
    json.key("resident").number(uint64_t{points_[i].resident});
    json.close('}');
  }
  json.close(']');
}
