// The profiler as a whole: is what samples stand for what there is?
#include <doctest/doctest.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "hummock/hummock.h"
#include "modes/sample_table.h"
#include "modes/sampling.h"

namespace sampling = hummock::modes::sampling;

namespace {

constexpr size_t kMean = 4096;

struct Profiled {
  explicit Profiled(size_t mean = kMean) {
    REQUIRE(hummock_profile_start(mean) == 0);
    before = sampling::current_table()->head;
  }
  ~Profiled() { CHECK(hummock_profile_stop() == 0); }
  double live_bytes() const { return since(&hummock_profile_head_t::live_bytes); }
  double live_blocks() const { return since(&hummock_profile_head_t::live_blocks) / HUMMOCK_PROFILE_BLOCK; }
  double all_bytes() const { return since(&hummock_profile_head_t::total_bytes); }
  uint64_t all_samples() const { return sampling::current_table()->head.samples - before.samples; }
  double since(uint64_t hummock_profile_head_t::*field) const {
    return static_cast<double>(static_cast<int64_t>(sampling::current_table()->head.*field - before.*field));
  }
  hummock_profile_head_t before;
};

struct Live {
  std::vector<void*> blocks;
  double bytes = 0;
  ~Live() {
    for (void* block : blocks) hummock_free(block);
  }
  void* take(void* block, size_t size) {
    REQUIRE(block != nullptr);
    blocks.push_back(block);
    bytes += static_cast<double>(size);
    return block;
  }
};

}  // namespace

// 64 MiB live of 4 KiB a sample: 16,000 samples, whose usual error is 0.8 %.
TEST_CASE("live: many small blocks, of which half are freed") {
  Profiled profiled;
  Live live;
  std::vector<void*> freed;
  for (unsigned i = 0; i < 1300000; ++i) {
    if (i % 2 == 0)
      live.take(hummock_malloc(100), 100);
    else
      freed.push_back(hummock_malloc(100));
  }
  for (void* block : freed) hummock_free(block);
  CHECK(profiled.live_bytes() == doctest::Approx(live.bytes).epsilon(0.05));
  CHECK(profiled.live_blocks() == doctest::Approx(650000).epsilon(0.05));
  CHECK(profiled.all_bytes() == doctest::Approx(130e6).epsilon(0.05));
}

TEST_CASE("live: all kinds of calls and sizes") {
  Profiled profiled;
  Live live;
  uint64_t random = 4711;
  const auto draw = [&random](unsigned most) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(random >> 33) % most;
  };
  for (unsigned i = 0; i < 12000; ++i) {
    const size_t size = 1 + draw(1u << (4 + draw(14)));
    switch (draw(4)) {
      case 0:
        live.take(hummock_malloc(size), size);
        break;
      case 1: {
        auto* bytes = static_cast<char*>(live.take(hummock_calloc(1, size), size));
        REQUIRE(std::count(bytes, bytes + size, 0) == static_cast<ptrdiff_t>(size));
        break;
      }
      case 2: {
        const size_t align = size_t{16} << draw(9);
        void* block = live.take(hummock_aligned_alloc(align, size), size);
        REQUIRE(reinterpret_cast<uintptr_t>(block) % align == 0);
        break;
      }
      default: {
        auto* block = static_cast<char*>(hummock_malloc(1 + draw(3000)));
        block[0] = 'x';
        block = static_cast<char*>(hummock_realloc(block, 4 * size));
        REQUIRE(block[0] == 'x');
        live.take(block, 4 * size);
      }
    }
    REQUIRE(hummock_usable_size(live.blocks.back()) != 0);
  }
  CHECK(profiled.live_bytes() == doctest::Approx(live.bytes).epsilon(0.05));
}

TEST_CASE("live: blocks that grow, shrink and move as large ones do") {
  Profiled profiled(65536);
  Live live;
  for (unsigned i = 0; i < 60; ++i) {
    size_t size = 70000;
    auto* block = static_cast<unsigned char*>(hummock_malloc(size));
    for (; size < 3000000; size += size / 3) {
      memset(block + size - 100, static_cast<int>(i), 100);
      const size_t next = size + size / 3;
      block = static_cast<unsigned char*>(hummock_realloc(block, next));
      REQUIRE(block[size - 1] == i);
    }
    live.take(block, size);
  }
  for (unsigned i = 0; i < 60; i += 2) {
    live.blocks[i] = hummock_realloc(live.blocks[i], 100000);
  }
  double bytes = 30.0 * 100000 + live.bytes / 2;
  CHECK(profiled.live_bytes() == doctest::Approx(bytes).epsilon(0.05));
}

TEST_CASE("live: mappings that grow and shrink where they stand") {
  Profiled profiled(65536);
  Live live;
  for (unsigned i = 0; i < 8; ++i) {
    void* block = hummock_malloc(size_t{6} << 20);
    for (size_t size = size_t{8} << 20; size <= size_t{64} << 20; size += size_t{8} << 20)
      block = hummock_realloc(block, size);
    block = hummock_realloc(block, size_t{40} << 20);
    live.take(block, size_t{40} << 20);
  }
  CHECK(profiled.live_bytes() == doctest::Approx(live.bytes).epsilon(0.01));
  CHECK(profiled.live_blocks() == doctest::Approx(8).epsilon(0.01));
}

TEST_CASE("live: threads, of which one frees what others allocate") {
  Profiled profiled;
  Live live;
  std::vector<void*> taken[4];
  const auto size_of = [](unsigned i) { return i % 50 == 0 ? size_t{9000 + i} : size_t{50 + i % 1000}; };
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&mine, size_of] {
      for (unsigned i = 0; i < 60000; ++i) mine.push_back(hummock_malloc(size_of(i)));
    });
  for (std::thread& each : threads) each.join();
  double bytes = 0;
  for (auto& mine : taken) {
    for (unsigned i = 0; i < mine.size(); ++i) {
      if (i % 3 == 0)
        hummock_free_sized(mine[i], size_of(i));
      else
        live.take(mine[i], size_of(i));
    }
  }
  bytes = live.bytes;
  CHECK(profiled.live_bytes() == doctest::Approx(bytes).epsilon(0.05));
}

TEST_CASE("all that was sampled goes when it is freed, also after the stop") {
  double before;
  {
    Live live;
    {
      Profiled profiled;
      before = static_cast<double>(profiled.before.live_bytes);
      for (unsigned i = 0; i < 20000; ++i) live.take(hummock_malloc(i % 5 == 0 ? 100000 : 500), 0);
      CHECK(profiled.live_bytes() > 0);
    }
    const uint64_t samples = sampling::current_table()->head.samples;
    for (unsigned i = 0; i < 20000; ++i) hummock_free(hummock_malloc(5000));
    CHECK(sampling::current_table()->head.samples == samples);
  }
  CHECK(static_cast<double>(sampling::current_table()->head.live_bytes) == before);
}

TEST_CASE("every block, when one byte is the mean") {
  Profiled profiled(1);
  Live live;
  for (unsigned i = 1; i <= 1000; ++i) live.take(hummock_malloc(i), i);
  CHECK(profiled.live_bytes() == live.bytes);
  CHECK(profiled.live_blocks() == 1000);
  CHECK(profiled.all_samples() == 1000);
}

// Of one size and of many: the table of samples can be five sixths full, wherever the blocks stand.
TEST_CASE("110,000 live samples find room") {
  for (const unsigned most : {1u, 500u}) {
    Profiled profiled(1);
    const uint64_t dropped = profiled.before.samples_dropped;
    Live live;
    for (unsigned i = 0; i < 110000; ++i) {
      const size_t size = 1000 + i * 7919u % most;
      live.take(hummock_malloc(size), size);
    }
    CHECK(sampling::current_table()->head.samples_dropped == dropped);
    CHECK(profiled.live_bytes() == live.bytes);
  }
}

TEST_CASE("the child of a fork has no profile, and does not touch its parent's") {
  Profiled profiled(1);
  void* block = hummock_malloc(1000);
  const hummock_profile_head_t before = sampling::current_table()->head;
  const pid_t child = fork();
  if (child == 0) {
    bool fine = sampling::current_table() == nullptr && sampling::mean() == 0;
    hummock_free(block);
    for (unsigned i = 0; i < 1000; ++i) hummock_free(hummock_malloc(i));
    // It may have its own.
    fine = fine && hummock_profile_start(1) == 0;
    void* own = hummock_malloc(123);
    fine = fine && sampling::current_table()->head.live_bytes == 123 &&
           sampling::current_table()->head.pid == static_cast<uint32_t>(getpid());
    hummock_free(own);
    fine = fine && sampling::current_table()->head.live_bytes == 0;
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(sampling::current_table()->head.live_bytes == before.live_bytes);
  CHECK(sampling::current_table()->head.samples == before.samples);
  hummock_free(block);
}

TEST_CASE("the profile as a file of pprof's text") {
  Profiled profiled;
  Live live;
  for (unsigned i = 0; i < 2000; ++i) live.take(hummock_malloc(10000), 10000);
  CHECK(hummock_profile_write(nullptr) == EINVAL);
  CHECK(hummock_profile_write("/nonexistent/profile") == ENOENT);
  CHECK(hummock_profile_write("/dev/full") == ENOSPC);
  char path[] = "/tmp/hummock-profile-XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  CHECK(hummock_profile_write(path) == 0);
  std::string text(size_t{4} << 20, '\0');
  const ssize_t length = pread(fd, text.data(), text.size(), 0);
  close(fd);
  unlink(path);
  REQUIRE(length > 0);
  text.resize(static_cast<size_t>(length));
  unsigned long long blocks = 0, bytes = 0, all = 0, all_bytes = 0;
  REQUIRE(sscanf(text.c_str(), "heap profile: %llu: %llu [%llu: %llu] @ heapprofile\n", &blocks, &bytes, &all,
                 &all_bytes) == 4);
  CHECK(bytes == sampling::current_table()->head.live_bytes);
  CHECK(all_bytes == sampling::current_table()->head.total_bytes);
  // The lines of stacks add up to the first.
  unsigned long long sum = 0;
  for (size_t at = text.find('\n') + 1; text[at] != '\n'; at = text.find('\n', at) + 1) {
    REQUIRE(sscanf(text.c_str() + at, "%*u: %llu [", &bytes) == 1);
    sum += bytes;
  }
  CHECK(sum == sampling::current_table()->head.live_bytes);
  CHECK(text.find("\nMAPPED_LIBRARIES:\n") != std::string::npos);
  CHECK(text.find("r-xp") != std::string::npos);
}

TEST_CASE("what cannot be asked for is refused") {
  constexpr uint64_t kTooMany = (uint64_t{1} << 40) + 1;
  if (kTooMany <= SIZE_MAX) CHECK(hummock_profile_start(static_cast<size_t>(kTooMany)) == EINVAL);
  CHECK(hummock_profile_stop() == 0);
  CHECK(hummock_profile_stop() == 0);
}
