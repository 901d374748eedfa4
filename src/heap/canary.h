// Bytes that nobody should have written.
#ifndef HUMMOCK_HEAP_CANARY_H
#define HUMMOCK_HEAP_CANARY_H

#include <stddef.h>
#include <stdint.h>
#include "base/annotate.h"

namespace hummock::heap {

__attribute__((always_inline)) HUMMOCK_READS_FORBIDDEN inline uint64_t word_at(const unsigned char* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

// The first byte that is not `value`, or `size`. Nobody may touch them: see base::Unwatched. Most often all
// are: looked at in lines, then words.
HUMMOCK_READS_FORBIDDEN inline size_t first_other(const unsigned char* bytes, unsigned char value,
                                                  size_t size) {
  const uint64_t wanted = value * 0x0101010101010101ull;
  size_t at = 0;
  for (; at + 64 <= size; at += 64) {
    uint64_t other = 0;
    for (size_t i = 0; i < 64; i += 8) other |= word_at(bytes + at + i) ^ wanted;
    if (other != 0) break;
  }
  while (at + 8 <= size && word_at(bytes + at) == wanted) at += 8;
  while (at < size && bytes[at] == value) ++at;
  return at;
}

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_CANARY_H
