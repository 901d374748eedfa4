// A thread purges pages of its own slabs while another frees blocks there a second time: it watches blocks
// that are free already, and does so as soon as a page reads as zeros. Each of these frees must be reported.
#include <hummock/hummock.h>
#include <setjmp.h>
#include <string.h>

#include "stress/stress.h"

namespace {

constexpr size_t kSize = 256;
constexpr size_t kBlocks = (size_t{64} << 20) / kSize;
constexpr size_t kStays = 241;  // one of so many
constexpr size_t kWatched = 32;
constexpr int kRounds = 4;

std::vector<char*> blocks(kBlocks);
std::atomic<size_t> freed;
std::atomic<bool> done;

thread_local jmp_buf back;
thread_local volatile bool expected;
unsigned reported, missed;

void on_bad_pointer(const char*) {
  stress::require(expected, "a report of a right free");
  longjmp(back, 1);
}

// The second word of a free block is not 0.
unsigned long second_word(const char* block) {
  return reinterpret_cast<const volatile unsigned long*>(block)[1];
}

void free_again(char* block) {
  expected = true;
  if (setjmp(back) == 0) {
    hummock_free(block);
    ++missed;
  } else {
    ++reported;
  }
  expected = false;
}

// A block that was freed and has its links.
char* choose(support::Random& rng) {
  const size_t number = rng.below(freed);
  if (number % kStays == 0) return nullptr;
  const unsigned long word = second_word(blocks[number]);
  return word == 0 || word == 0x1111111111111111 ? nullptr : blocks[number];
}

void watch(uint64_t seed) {
  support::Random rng(seed);
  char* watched[kWatched] = {};
  while (freed < 2000) std::this_thread::yield();
  while (!done && missed == 0) {
    for (char*& block : watched) {
      if (block == nullptr) {
        block = choose(rng);
      } else if (second_word(block) == 0) {
        free_again(block);
        block = nullptr;
      }
    }
  }
}

void run_round(uint64_t seed) {
  freed = 0;
  done = false;
  for (char*& block : blocks) {
    block = static_cast<char*>(hummock_malloc(kSize));
    stress::require(block != nullptr, "memory");
    memset(block, 0x11, kSize);
  }
  std::thread watcher(watch, seed);
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i % kStays != 0) hummock_free(blocks[i]);
    freed = i;
  }
  done = true;
  watcher.join();
  for (size_t i = 0; i < kBlocks; i += kStays) hummock_free(blocks[i]);
}

}  // namespace

int main() {
  hummock_on_bad_pointer(on_bad_pointer);
  for (int round = 0; round < kRounds && missed == 0; ++round) run_round(static_cast<uint64_t>(round));
  printf("%u double frees reported in pages that were just purged\n", reported);
  stress::require(missed == 0, "a double free was not reported");
  return 0;
}
