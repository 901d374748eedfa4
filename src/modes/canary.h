// Bytes that nobody should have written.
#ifndef HUMMOCK_MODES_CANARY_H
#define HUMMOCK_MODES_CANARY_H

#include <stddef.h>
#include <stdint.h>
#include "base/annotate.h"

namespace hummock::modes {

using Words = uint64_t __attribute__((vector_size(16)));

template <class T>
__attribute__((always_inline)) HUMMOCK_READS_FORBIDDEN inline T read_as(const unsigned char* bytes) {
  T words;
  __builtin_memcpy(&words, bytes, sizeof words);
  return words;
}

// 0: all of them are `wanted`. Of the last ones, which fill no line, some are looked at twice.
HUMMOCK_READS_FORBIDDEN inline uint64_t others_among(const unsigned char* bytes, uint64_t wanted,
                                                     size_t size) {
  if (size < 16) return (read_as<uint64_t>(bytes) ^ wanted) | (read_as<uint64_t>(bytes + size - 8) ^ wanted);
  const Words lines = {wanted, wanted};
  Words other = read_as<Words>(bytes + size - 16) ^ lines;
  size_t at = 0;
  for (; at + 64 <= size; at += 64) {
    for (size_t i = 0; i < 64; i += 16) other |= read_as<Words>(bytes + at + i) ^ lines;
  }
  for (; at + 16 <= size; at += 16) other |= read_as<Words>(bytes + at) ^ lines;
  return other[0] | other[1];
}

// The first byte that is not `value`, or `size`. Nobody may touch them: see base::Unwatched. Most often all
// are.
HUMMOCK_READS_FORBIDDEN inline size_t first_other(const unsigned char* bytes, unsigned char value,
                                                  size_t size) {
  if (size >= 8 && others_among(bytes, value * 0x0101010101010101ull, size) == 0) return size;
  size_t at = 0;
  while (at < size && bytes[at] == value) ++at;
  return at;
}

}  // namespace hummock::modes

#endif  // HUMMOCK_MODES_CANARY_H
