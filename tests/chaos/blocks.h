// The blocks of one thread of the chaos program, each of which knows what must stand in it.
#ifndef HUMMOCK_TESTS_CHAOS_BLOCKS_H
#define HUMMOCK_TESTS_CHAOS_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "support/support.h"

namespace chaos {

enum class How : uint8_t { plain, aligned, made, made_aligned, heap, plugin };

struct Block {
  char* address = nullptr;
  size_t size = 0, usable = 0, filled = 0, alignment = 1;
  uint64_t tag = 0;
  How how = How::plain;
  void* heap = nullptr;
};

// Ends the process with what was broken and how to see it again.
[[noreturn]] void fail(const char* promise, const Block& block);

inline void require(bool held, const char* promise, const Block& block = {}) {
  if (!held) fail(promise, block);
}

inline void check(const Block& block) {
  if (block.address == nullptr) return;
  require(support::intact(block.address, block.tag, block.filled), "the contents of a live block", block);
}

}  // namespace chaos

#endif  // HUMMOCK_TESTS_CHAOS_BLOCKS_H
