// Limits that are set and lifted while 32 threads allocate: a request is served or refused, never half of
// both, and afterwards all is as without them.
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>

#include "stress/stress.h"

namespace {

std::atomic<bool> stop{false};
std::atomic<size_t> refused{0}, told{0};

void handler(int, size_t, size_t) {
  ++told;
  hummock_free(hummock_malloc(5000));  // which may be refused, too
}

struct Block {
  char* start = nullptr;
  size_t size = 0;

  // Every page has the sign of the thread that has the block.
  void check(char sign) const {
    for (size_t at = 0; at < size; at += 4096) stress::require(start[at] == sign, "a block of one's own");
  }
  void take(void* block, size_t bytes, char sign) {
    const int error = errno;
    if (block == nullptr) {
      stress::require(error == ENOMEM, "ENOMEM");
      ++refused;
      return;
    }
    start = static_cast<char*>(block);
    size = bytes;
    memset(start, sign, size);
  }
};

void* get(support::Random& random, size_t size) {
  errno = 0;
  switch (random.below(4)) {
    case 0:
      return hummock_aligned_alloc(4096, (size + 4095) & ~size_t{4095});
    case 1:
      return hummock_calloc(1, size);
    default:
      return hummock_malloc(size);
  }
}

void use(size_t self) {
  support::Random random(support::run_seed() + self);
  const char sign = static_cast<char>(self + 1);
  Block live[100];
  for (size_t i = support::scaled(20000, 1000); i > 0; --i) {
    Block& block = live[random.below(100)];
    block.check(sign);
    const size_t size = 16 + random.size_up_to(random.one_in(50) ? size_t{3} << 20 : 20000);
    if (block.start != nullptr && random.one_in(4)) {
      errno = 0;
      void* grown = hummock_realloc(block.start, size);
      if (grown != nullptr) block.take(grown, size, sign);
      block.check(sign);  // refused: it is as it was
      continue;
    }
    hummock_free(block.start);
    block = Block();
    block.take(get(random, size), size, sign);
  }
  for (const Block& block : live) {
    block.check(sign);
    hummock_free(block.start);
  }
}

void set_limit(const char* name, const char* value) {
  stress::require(hummock_option_set(name, value) == 0, "a limit");
}

// The first two limits stay until they were reached: the threads may have ended before this one runs again.
void change_limits() {
  while (!stop && (refused == 0 || told == 0)) usleep(300);
  support::Random random(support::run_seed() + 100);
  const char* values[] = {"none", "1", "64K", "10M", "100M", "1%", "200M", "none"};
  while (!stop) {
    set_limit(random.one_in(2) ? "limit_hard" : "limit_soft", values[random.below(8)]);
    hummock_stats_t stats = {};
    stats.size = sizeof stats;
    hummock_stats(&stats);
    usleep(300);
  }
  set_limit("limit_hard", "none");
  set_limit("limit_soft", "none");
}

}  // namespace

int main() {
  support::HangGuard guard(280);
  support::run_seed();
  hummock_on_limit(handler);
  set_limit("limit_hard", "10M");
  set_limit("limit_soft", "64K");
  std::thread changer(change_limits);
  stress::run_threads(32, use);
  stop = true;
  changer.join();
  fprintf(stderr, "%zu refused, %zu told\n", refused.load(), told.load());
  stress::require(refused > 0 && told > 0, "limits that were reached");
  void* block = hummock_malloc(size_t{300} << 20);
  stress::require(block != nullptr, "no limit is left");
  hummock_free(block);
  hummock_trim(0);
  hummock_stats_t stats = {};
  stats.size = sizeof stats;
  hummock_stats(&stats);
  stress::require(stats.live < 10000, "all is freed");
}
