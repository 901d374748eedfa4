// Programs may copy memory that they never wrote: the unused part of a ring or of an array that grows. What
// free blocks held there once must not make the block that such a copy stands in look free.
#include <string.h>

#include "stress/stress.h"

namespace {

std::atomic<unsigned> yields{0};

constexpr size_t kSizes[] = {16, 32, 48, 64, 128, 256, 1000, 9000};
const size_t kBytes = support::scaled(size_t{8} << 20, size_t{1} << 20);
constexpr size_t kStep = 16;

// Full slabs of the size, all of whose blocks are freed, by one thread or by two.
void use(size_t size, bool two) {
  std::vector<void*> blocks(kBytes / size);
  for (void*& block : blocks) {
    block = memory::get(size);
    stress::require(block != nullptr, "memory");
    memset(block, 1, size);
  }
  const auto give = [&](size_t first, size_t end) {
    for (; first < end; ++first) memory::give(blocks[first]);
  };
  if (!two) return give(0, blocks.size());
  const size_t half = blocks.size() / 2;
  stress::run_threads(2, [&](size_t self) { give(self * half, self == 0 ? half : blocks.size()); });
}

// Every place of a large block that was never written is copied to the start of a small one.
void copy_from(size_t large, size_t size) {
  char* unwritten = static_cast<char*>(memory::get(large));
  stress::require(unwritten != nullptr, "memory");
  std::vector<void*> copies;
  for (size_t at = 0; at + size <= large; at += kStep) {
    void* copy = memory::get(size);
    stress::require(copy != nullptr, "memory");
    memcpy(copy, unwritten + at, size);
    copies.push_back(copy);
    if (copies.size() < 100) continue;
    for (void* each : copies) memory::give(each);
    copies.clear();
  }
  // Another thread sees no more than this one.
  stress::run_threads(1, [&](size_t) {
    for (void* each : copies) memory::give(each);
  });
  memory::give(unwritten);
}

// A word of the program's own, and then what an unwritten block begins with: half of what a free block has.
// Another thread's free sees by itself that the block is live, and waits for nobody.
void copy_behind_a_word(size_t size) {
  constexpr size_t kMessages = 2000;
  std::vector<char*> unwritten(kMessages), messages(kMessages);
  for (char*& block : unwritten) block = static_cast<char*>(memory::get(size));
  for (size_t i = 0; i < kMessages; ++i) {
    messages[i] = static_cast<char*>(memory::get(size));
    stress::require(unwritten[i] != nullptr && messages[i] != nullptr, "memory");
    memcpy(messages[i], &size, sizeof(size));
    memcpy(messages[i] + sizeof(size), unwritten[i], size - sizeof(size));
  }
  const unsigned before = yields;
  stress::run_threads(1, [&](size_t) {
    for (char* message : messages) memory::give(message);
  });
  stress::require(yields - before < kMessages / 10, "a free that does not wait");
  for (char* block : unwritten) memory::give(block);
}

}  // namespace

// Called by the allocator too, where it is part of the program.
extern "C" int sched_yield() noexcept {
  ++yields;
  return 0;
}

int main() {
  support::HangGuard guard(280);
  for (const size_t size : kSizes) {
    copy_behind_a_word(size);
    for (const bool two : {false, true}) {
      use(size, two);
      for (const size_t large : {4000, 60000, 200000}) {
        if (large < size) continue;
        for (size_t round = 0; round < support::scaled(20, 2); ++round) copy_from(large, size);
      }
    }
  }
}
